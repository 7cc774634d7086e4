"""Validate an RO-Crate without a network: ``python validate.py crate.zip context.jsonld`` prints what is wrong with it.

The validator looks up the terms of RO-Crate 1.1 at their address. Here they come from a file, those of a later version,
with the few that have another meaning there.
"""

import io
import json
import sys

import requests
from requests.adapters import BaseAdapter
from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "workflow-run-crate"
TERMS = {
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "input": "https://bioschemas.org/ComputationalWorkflow#input",
    "output": "https://bioschemas.org/ComputationalWorkflow#output",
}
SKIPPED = {
    "ro-crate-1.1_31.2": "an organization should have a page: the authors have none",
    "process-run-crate-0.5_5.1": "a program should have an absolute address: the workflow is a file of the archive",
}


class Terms(BaseAdapter):
    """Answers every request with the terms."""

    def __init__(self, path):
        super().__init__()
        with open(path, "rb") as file:
            described = json.load(file)
        described["@context"] |= TERMS
        self.content = json.dumps(described).encode()

    def send(self, request, **kwargs):
        response = requests.Response()
        response.status_code, response.url, response.request = 200, request.url, request
        response.headers["Content-Type"] = "application/ld+json"
        response.raw = io.BytesIO(self.content)
        return response

    def close(self):
        pass


def main(crate, context):
    settings = services.ValidationSettings(
        rocrate_uri=models.URI(crate),
        profile_identifier=PROFILE,
        requirement_severity=models.Severity.RECOMMENDED,
        no_cache=True,
        skip_checks=list(SKIPPED),
    )
    HttpRequester().session.mount(CONTEXT, Terms(context))  # the settings have begun the session
    result = services.validate(settings)
    issues = [
        f"{issue.severity.name}: {issue.check.identifier}: {issue.violatingEntity}: {issue.message}"
        for issue in result.get_issues()
    ]
    print(*issues, f"{len(result.executed_checks)} checks", sep="\n")
    return bool(issues)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
