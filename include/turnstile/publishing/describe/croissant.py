"""`croissant.json`: the package as Croissant 1.1 (MLCommons), one record set a table.

Links are relative to the folder that it lies in.
"""

from __future__ import annotations

from typing import Any

from turnstile.programme.field_registry import title_of
from turnstile.publishing.contents import Contents, TableFile
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.written_text import json_bytes

_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "string": "sc:Text",
}
# The context that the specification prints; validators compare it word by word.
_OF_CROISSANT = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty "
    "fileObject fileSet format includes isArray isLiveDataset jsonPath key md5 parentField "
    "path recordSet references regex repeated replace samplingRate separator source subField "
    "transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
    **{name: f"cr:{name}" for name in _OF_CROISSANT.split()},
}


def write(contents: Contents) -> bytes:
    """Return the description."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": contents.name,
        "description": programme.description,
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "license": path_of(programme.publish.licence) or programme.publish.licence,
        "url": f"urn:turnstile:{contents.drawn.attempt.key}",
        "version": f"{plan.revision}.0.0",
        "datePublished": contents.built_at.date().isoformat(),
        "creator": {"@type": "sc:Organization", "name": programme.publish.curator},
        "citeAs": f"{programme.publish.curator}: {programme.title}, {plan.week}, "
        f"revision {plan.revision}",
        "distribution": [_file(contents, table) for table in contents.tables],
        "recordSet": [_records(contents, table) for table in contents.tables],
    }
    return json_bytes(described)


def _file(contents: Contents, table: TableFile) -> dict[str, Any]:
    """Describe the Parquet file of a table."""
    record = contents.record(table.parquet)
    return {
        "@type": "cr:FileObject",
        "@id": record.path,
        "name": record.path,
        "contentUrl": f"../{record.path}",
        "contentSize": f"{record.size_bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": record.sha256,
    }


def _records(contents: Contents, table: TableFile) -> dict[str, Any]:
    """Describe the rows of a table."""
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": f"{table.layout.what}, {table.layout.unit}",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/{name}",
                "name": f"{table.name}/{name}",
                "description": contents.about(name) or title_of(name),
                "dataType": _TYPES[kind],
                "source": {"fileObject": {"@id": table.parquet}, "extract": {"column": name}},
            }
            for name, kind in table.columns
        ],
    }
