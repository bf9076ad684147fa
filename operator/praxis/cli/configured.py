"""Settings from options and environment, or one sentence for each that does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import click
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

Settings = TypeVar("Settings", bound=BaseSettings)


def configured(model: type[Settings], given: Mapping[str, Any]) -> Settings:
    """The settings; what is None was not given as an option.

    Raises:
        click.UsageError: a value does not hold its bounds. Named by its variable; not quoted: it may be secret.
    """
    try:
        return model(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        prefix = model.model_config.get("env_prefix", "")
        said = [f"{variable(prefix, each['loc'])}: {each['msg']}" for each in error.errors(include_input=False)]
        raise click.UsageError("configuration: " + "; ".join(said)) from error
    except SettingsError as error:
        raise click.UsageError(f"configuration: {error}; lists and the like are given as JSON") from error


def variable(prefix: str, location: tuple[int | str, ...]) -> str:
    """The environment variable of a setting; empty for what concerns several."""
    names = [str(each).upper() for each in location if isinstance(each, str)]
    return f"{prefix}{'__'.join(names)}" if names else prefix.rstrip("_")
