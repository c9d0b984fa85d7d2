"""`dcat.jsonld`: the package for catalogues and harvesters, as DCAT 3."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from turnstile.publishing.contents import Contents, FileRecord
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.written_text import json_bytes

_MEDIATYPES = {
    ".csv": "text/csv",
    ".csv.gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
    ".geojson": "application/geo+json",
}
_DCAT_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def write(contents: Contents) -> bytes:
    """Return the DCAT 3 dataset, in its series of weeks."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    series = f"urn:turnstile:{programme.name}"
    dataset_id = f"{series}:{plan.week}:r{plan.revision}"
    days = plan.week.days
    dataset: dict[str, Any] = {
        "@id": dataset_id,
        "@type": "dcat:Dataset",
        "dct:identifier": str(contents.drawn.attempt.key),
        "dct:title": f"{programme.title}, {plan.week}",
        "dct:description": programme.description,
        "dct:issued": _date(contents.built_at.date().isoformat()),
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": programme.publish.curator},
        "dcat:version": f"{plan.week}.r{plan.revision}",
        "dct:temporal": {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _date(days[0].isoformat()),
            "dcat:endDate": _date(days[-1].isoformat()),
        },
        "dcat:inSeries": {"@id": series},
        "dcat:distribution": [
            _distribution(record, dataset_id) for record in contents.records() if _suffix(record)
        ],
    }
    if licence := path_of(programme.publish.licence):
        dataset["dct:license"] = {"@id": licence}
    if plan.revision:
        dataset["dcat:previousVersion"] = {"@id": f"{series}:{plan.week}:r{plan.revision - 1}"}
    period = timedelta(days=programme.schedule.period_days)
    group = {
        "@id": series,
        "@type": "dcat:DatasetSeries",
        "dct:title": programme.title,
        "dct:description": programme.description,
        "dcat:temporalResolution": {"@type": "xsd:duration", "@value": f"P{period.days}D"},
    }
    return json_bytes({"@context": _DCAT_CONTEXT, "@graph": [dataset, group]})


def _distribution(record: FileRecord, dataset: str) -> dict[str, Any]:
    return {
        "@id": f"{dataset}:{record.path}",
        "@type": "dcat:Distribution",
        "dct:title": record.path,
        "dcat:mediaType": {
            "@id": f"https://www.iana.org/assignments/media-types/{_suffix(record)}"
        },
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(record.size_bytes)},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": record.sha256,
        },
    }


def _suffix(record: FileRecord) -> str | None:
    """Return the media type of a file of data; None for other files."""
    return next((kind for end, kind in _MEDIATYPES.items() if record.path.endswith(end)), None)


def _date(text: str) -> dict[str, str]:
    return {"@type": "xsd:date", "@value": text}
