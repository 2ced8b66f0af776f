"""Rules of the mzTab-M 2.0 specification: sections, mandatory metadata, columns, types, empty values and references."""

import re

NULL = "null"
PARAMETER = r"\[[^,\[\]]*, ?[^,\[\]]*, ?[^,\[\]]+, ?[^,\[\]]*\]"
NUMBER = r"-?\d+(\.\d+)?(e-?\d+)?"
ADDUCT = r"\[\d*M([+-]\w+)*\]\d*[+-]"
FIELDS = [  # of the metadata, in their order; all are mandatory except for those in OPTIONAL
    ("mzTab-version", r"2\.0\.\d-M"),
    ("mzTab-ID", r".+"),
    ("title", r".+"),
    (r"software\[\d+\]", PARAMETER),
    ("quantification_method", PARAMETER),
    (r"ms_run\[\d+\]-location", r"null|\w+:.+"),
    (r"ms_run\[\d+\]-scan_polarity\[\d+\]", r"\[MS, MS:(1000130, positive|1000129, negative) scan, \]"),
    (r"assay\[\d+\]", r".+"),
    (r"assay\[\d+\]-ms_run_ref", r"ms_run\[\d+\]"),
    (r"study_variable\[\d+\]", r".+"),
    (r"study_variable\[\d+\]-assay_refs", r"assay\[\d+\](\|assay\[\d+\])*"),
    (r"study_variable\[\d+\]-description", r".+"),
    (r"cv\[\d+\]-label", r"\w+"),
    (r"cv\[\d+\]-full_name", r".+"),
    (r"cv\[\d+\]-version", r".+"),
    (r"cv\[\d+\]-uri", r"https?://.+"),
    (r"database\[\d+\]", PARAMETER),
    (r"database\[\d+\]-prefix", r"\w+"),
    (r"database\[\d+\]-version", r".+"),
    (r"database\[\d+\]-uri", r"null|\w+:.+"),
    ("small_molecule-quantification_unit", PARAMETER),
    ("small_molecule_feature-quantification_unit", PARAMETER),
    ("small_molecule-identification_reliability", PARAMETER),
    (r"id_confidence_measure\[\d+\]", PARAMETER),
]
OPTIONAL = {"title", "small_molecule-identification_reliability"}
# Columns of each section, in their order, with the form of their values.
SECTIONS = {
    "SML": {
        "SML_ID": r"\d+",
        "SMF_ID_REFS": r"\d+(\|\d+)*|null",
        "database_identifier": r"row:\d+|null",
        "chemical_formula": r"\w+|null",
        "smiles": r"[^|]+|null",
        "inchi": r"InChI=.+|null",
        "chemical_name": r"[^|]+|null",
        "uri": r"\w+:.+|null",
        "theoretical_neutral_mass": NUMBER + "|null",
        "adduct_ions": ADDUCT + "|null",
        "reliability": r"[0-4]|null",
        "best_id_confidence_measure": PARAMETER + "|null",
        "best_id_confidence_value": NUMBER + "|null",
        "abundance_assay[1]": NUMBER + "|null",
        "abundance_study_variable[1]": NUMBER + "|null",
        "abundance_variation_study_variable[1]": NUMBER + "|null",
    },
    "SMF": {
        "SMF_ID": r"\d+",
        "SME_ID_REFS": r"\d+(\|\d+)*|null",
        "SME_ID_REF_ambiguity_code": r"[123]|null",
        "adduct_ion": ADDUCT + "|null",
        "isotopomer": PARAMETER + "|null",
        "exp_mass_to_charge": NUMBER,
        "charge": r"[1-9]\d*",
        "retention_time_in_seconds": NUMBER + "|null",
        "retention_time_in_seconds_start": NUMBER + "|null",
        "retention_time_in_seconds_end": NUMBER + "|null",
        "abundance_assay[1]": NUMBER + "|null",
    },
    "SME": {
        "SME_ID": r"\d+",
        "evidence_input_id": r".+",
        "database_identifier": r"row:\d+|null",
        "chemical_formula": r"\w+|null",
        "smiles": r".+|null",
        "inchi": r"InChI=.+|null",
        "chemical_name": r".+|null",
        "uri": r"\w+:.+|null",
        "derivatized_form": PARAMETER + "|null",
        "adduct_ion": ADDUCT + "|null",
        "exp_mass_to_charge": NUMBER,
        "charge": r"[1-9]\d*",
        "theoretical_mass_to_charge": NUMBER,
        "spectra_ref": r"ms_run\[\d+\]:index=\d+",
        "identification_method": PARAMETER,
        "ms_level": PARAMETER,
        "id_confidence_measure[1]": NUMBER + "|null",
        "rank": r"[1-9]\d*",
    },
}
HEADERS = {"SML": "SMH", "SMF": "SFH", "SME": "SEH"}


def check_mztab(text):
    """Raise an AssertionError that names the first broken rule; return the rows of the sections as dicts."""
    lines = [line.split("\t") for line in text.splitlines() if line]
    order = [prefix for i, (prefix, *_) in enumerate(lines) if not i or lines[i - 1][0] != prefix]
    assert order == [name for name in ("MTD", "SMH", "SML", "SFH", "SMF", "SEH", "SME") if name in order], order
    _check_metadata([line[1:] for line in lines if line[0] == "MTD"])
    rows = {prefix: _read_section(prefix, lines) for prefix in SECTIONS}
    _check_references(rows)
    return rows


def _check_metadata(entries):
    assert all(len(entry) == 2 for entry in entries)
    position, seen = 0, set()
    for name, value in entries:
        found = [i for i, (pattern, _) in enumerate(FIELDS) if re.fullmatch(pattern, name)]
        assert found and found[0] >= position, f"{name} is unknown or out of order"
        position = found[0]
        assert re.fullmatch(FIELDS[position][1], value), f"{name}: {value}"
        seen.add(FIELDS[position][0])
    missing = [pattern for pattern, _ in FIELDS if pattern not in seen | OPTIONAL]
    assert not missing, f"mandatory metadata is missing: {missing}"


def _read_section(prefix, lines):
    columns = SECTIONS[prefix]
    (header,) = [line[1:] for line in lines if line[0] == HEADERS[prefix]]
    assert header[: len(columns)] == list(columns), header
    assert all(re.fullmatch(r"opt_global_[\w:\[\]-]+", name) for name in header[len(columns) :])
    rows = [dict(zip(header, line[1:], strict=True)) for line in lines if line[0] == prefix]
    for row in rows:
        for name, pattern in columns.items():
            is_null = row[name] == NULL
            assert not is_null or pattern.endswith("|null"), f"{prefix} {name} is null"
            assert is_null or re.fullmatch(pattern, row[name]), f"{prefix} {name}: {row[name]}"
    return rows


def _check_references(rows):
    """Identifiers are unique, references exist, and ambiguity and ranks are consistent."""
    for prefix, columns in SECTIONS.items():
        name = next(iter(columns))
        identifiers = [row[name] for row in rows[prefix]]
        assert len(set(identifiers)) == len(identifiers), f"{name} is not unique"
    features, evidence = {row["SMF_ID"] for row in rows["SMF"]}, {row["SME_ID"]: row for row in rows["SME"]}
    assert all(features >= set(_items(row["SMF_ID_REFS"])) for row in rows["SML"])
    for row in rows["SMF"]:
        referred = [evidence[identifier] for identifier in _items(row["SME_ID_REFS"])]
        assert (row["SME_ID_REF_ambiguity_code"] != NULL) == (len(referred) > 1)
        assert len({item["evidence_input_id"] for item in referred}) <= 1
    inputs = [row["SME_ID_REFS"] for row in rows["SMF"] if row["SME_ID_REFS"] != NULL]
    assert len({row["evidence_input_id"] for row in rows["SME"]}) == len(inputs)


def _items(references):
    return [] if references == NULL else references.split("|")
