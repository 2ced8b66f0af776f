"""Tools of contributors: the checks, the site and the packages."""
