#!/usr/bin/env python3
"""Deploy the disposable target function to Function Compute 3.0, and print the RemediationTarget that declares it.

Run it again to bring the function up to date: it creates what is absent and updates what it created. A function of the
same name that it did not create is left alone. The environment is merged, so that a restart's marker is kept.

Credentials come from ALIBABA_CLOUD_ACCESS_KEY_ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET and, for STS,
ALIBABA_CLOUD_SECURITY_TOKEN. They need fc:CreateFunction, fc:GetFunction and fc:UpdateFunction. They are not those with
which PRAXIS acts: give PRAXIS a key of its own, limited to this one function (see README.md).
"""

import base64
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import click
import yaml
from alibabacloud_fc20230330 import models
from alibabacloud_fc20230330.client import Client
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.utils_models import Config

SOURCE = Path(__file__).with_name("index.py")
OWNED = "Disposable target of PRAXIS; deployed by deploy/target-function/deploy.py"
HEALTH_PATH = "/praxis/health"
RUNTIME = {"runtime": "python3.10", "handler": "index.handler", "memory_size": 128, "cpu": 0.05, "disk_size": 512}
TIMEOUT_SECONDS = 10


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--region", required=True, help="Region id, for example ap-southeast-1.")
@click.option("--account-id", required=True, help="The account that owns the function.")
@click.option("--function", "name", default="praxis-disposable", show_default=True, help="The function's name.")
@click.option("--endpoint", help="The service's address; by default ACCOUNT.REGION.fc.aliyuncs.com.")
@click.option("--namespace", default="default", show_default=True, help="Namespace of the RemediationTarget.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Alerts that belong to it; repeatable.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; send nothing.")
def main(*, region, account_id, name, endpoint, namespace, labels, dry_run):
    """Deploy the disposable target function, and print the RemediationTarget to apply.

    Credentials come from ALIBABA_CLOUD_ACCESS_KEY_ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET and, for STS,
    ALIBABA_CLOUD_SECURITY_TOKEN; they need fc:CreateFunction, fc:GetFunction and fc:UpdateFunction.
    """
    selector = dict(_pair(label) for label in labels or (f"function={name}",))
    address = endpoint or f"https://{account_id}.{region}.fc.aliyuncs.com"
    if dry_run:
        click.echo(f"DRY RUN: would create or update function {name} at {address}; nothing is sent.", err=True)
    else:
        client = _client(address, region)
        click.echo(f"{_deploy(client, name)} function {name} at {address}", err=True)
    click.echo(
        _manifest(
            region=region, account_id=account_id, name=name, endpoint=endpoint, namespace=namespace, selector=selector
        )
    )


def _pair(label):
    key, separator, value = label.partition("=")
    if not key or not separator:
        raise click.BadParameter(f"{label!r} is not KEY=VALUE", param_hint="--label")
    return key, value


def _client(address, region):
    scheme, _, host = address.rpartition("://")
    if scheme not in {"https", "http"} or (scheme == "http" and host.split(":")[0] not in {"127.0.0.1", "localhost"}):
        raise click.BadParameter("must be https://…; http only on this machine", param_hint="--endpoint")
    if os.environ.get("DEBUG", "").lower() == "sdk":
        raise click.ClickException("unset DEBUG=sdk: with it the SDK prints signatures and tokens")
    try:
        key, secret = os.environ["ALIBABA_CLOUD_ACCESS_KEY_ID"], os.environ["ALIBABA_CLOUD_ACCESS_KEY_SECRET"]
    except KeyError as error:
        raise click.ClickException(f"{error.args[0]} is not set; see --help") from error
    return Client(
        Config(
            access_key_id=key,
            access_key_secret=secret,
            security_token=os.environ.get("ALIBABA_CLOUD_SECURITY_TOKEN"),
            region_id=region,
            endpoint=host,
            protocol=scheme.upper(),
        )
    )


def _deploy(client, name):
    """Create the function, or update it when it is ours; says which was done."""
    code = models.InputCodeLocation(zip_file=base64.b64encode(_package()).decode())
    environment = {"HEALTH_PATH": HEALTH_PATH}
    fields = {**RUNTIME, "code": code, "description": OWNED, "timeout": TIMEOUT_SECONDS}
    try:
        found = _existing(client, name)
        if found is None:
            body = models.CreateFunctionInput(function_name=name, environment_variables=environment, **fields)
            client.create_function(models.CreateFunctionRequest(body=body))
            return "created"
        if found.description != OWNED:
            raise click.ClickException(f"a function {name} exists that this script did not create; choose --function")
        merged = {**(found.environment_variables or {}), **environment}
        body = models.UpdateFunctionInput(environment_variables=merged, **fields)
        client.update_function(name, models.UpdateFunctionRequest(body=body))
    except AlibabaCloudException as error:
        # Not the exception itself: its text holds the whole answer.
        raise click.ClickException(f"the service answered {error.status_code} {error.code}") from None
    return "updated"


def _existing(client, name):
    try:
        return client.get_function(name, models.GetFunctionRequest()).body
    except AlibabaCloudException as error:
        if error.status_code == 404:
            return None
        raise


def _package():
    """The zip archive, the same bytes for the same source."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo("index.py", date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, SOURCE.read_bytes())
    return data.getvalue()


def _manifest(*, region, account_id, name, endpoint, namespace, selector):
    function = {"region": region, "accountId": account_id, "function": name, "qualifier": "LATEST"}
    if endpoint:
        function["endpoint"] = endpoint
    target = name.lower().replace("_", "-")
    document = {
        "apiVersion": "praxis.kopachelli.dev/v1alpha1",
        "kind": "RemediationTarget",
        "metadata": {"name": target, "namespace": namespace},
        "spec": {
            "kind": "FunctionCompute",
            "functionCompute": {**function, "healthPath": HEALTH_PATH},
            "credentialsFile": f"{target}.json",
            "disposable": True,
            "alertSelector": {"matchLabels": selector},
        },
    }
    return yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False).rstrip()


if __name__ == "__main__":
    sys.exit(main())
