"""Two routes to one answer: a numerical self-check of the library on random problems."""
