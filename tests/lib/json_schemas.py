# SPDX-License-Identifier: BSD-2-Clause
"""The JSON Schemas in share/allium/schemas, with which real output is compared, more strictly than users need: a key that
no schema has is an error.
"""
import functools
import json
import os

import jsonschema

FOLDER = os.path.realpath(__file__ + "/../../../share/allium/schemas")
ENDING = ".schema.json"


def strict(schema):
    """The schema without room for keys that it does not name. The rows of a query have the names that the query gives."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if "properties" in schema and isinstance(schema["properties"], dict) and "type" in schema:
        made["additionalProperties"] = False
    return made


@functools.cache
def validator(name):
    with open(os.path.join(FOLDER, name + ENDING)) as file:
        return jsonschema.Draft202012Validator(strict(json.load(file)))


def names():
    return sorted(name[:-len(ENDING)] for name in os.listdir(FOLDER))


def check(document, name=None):
    """Raises jsonschema.ValidationError if the document is not what the schema says that it names, or else `name`."""
    validator(name or document["schema"]).validate(document)


def check_text(text, most_bytes=1 << 18):
    """As check(), of each JSON document in a text; large texts are left out, since they would take long."""
    decoder, at, name = json.JSONDecoder(), 0, None
    while len(text) <= most_bytes and at < len(text):
        document, end = decoder.raw_decode(text, at)
        if list(document) == ["schema", "version"]:  # the first line of a stream
            name = document["schema"]
        check(document, name)
        at = end + len(text[end:]) - len(text[end:].lstrip())
