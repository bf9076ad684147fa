"""The gateway's addresses: what each request is answered, and that each notification is accounted for once.

Alertmanager sends again after a 5xx or no answer, and drops a notification that is answered with a 4xx, 429 included
(`notify.Retrier`). So 4xx is for what would be refused again, and everything else that is not stored gets 503.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError

from praxis.errors import PraxisError, RetryLater
from praxis.intake import body
from praxis.intake.authentication import Sender
from praxis.intake.ledger import Ledger
from praxis.intake.metrics import Metrics
from praxis.intake.payload import Notification, parse
from praxis.intake.readiness import Readiness
from praxis.intake.receipt import SENTENCES, Cause, Outcome, Receipt, Receipts

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS: Final = 5

CAUSES: Final = {
    400: Cause.INCOMPLETE,
    401: Cause.UNAUTHENTICATED,
    413: Cause.TOO_LARGE,
    415: Cause.UNSUPPORTED_MEDIA_TYPE,
    422: Cause.INVALID,
}


@dataclass(frozen=True)
class Limits:
    """What one address takes."""

    body: int
    """Bytes."""
    read_timeout: float
    """Seconds for a whole body."""
    concurrency: int
    """Notifications at once."""


@dataclass
class Address:
    """Where one kind of sender posts its notifications."""

    path: str
    receiver: str
    sender: Sender
    limits: Limits
    ledger: Ledger
    metrics: Metrics
    receipts: Receipts = field(default_factory=Receipts)
    busy: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Take a notification and answer it."""
        method = self.sender.method
        with self.metrics.handling(method):
            cause, incident = Cause.INTERRUPTED, None
            try:
                receipt = await self._take(request)
                cause, incident = receipt.cause, receipt.incident
                return _taken(receipt)
            except web.HTTPException as refusal:
                cause = CAUSES[refusal.status]
                raise
            except RetryLater as error:
                cause = Cause(error.reason)
                return _unavailable(cause, str(error))
            except Exception:
                # The edge: whatever went wrong in here, the sender must learn that nothing is certain to be stored.
                log.exception("a notification failed")
                cause = Cause.INTERNAL_ERROR
                return _unavailable(cause, "an internal error; the log of the gateway tells more")
            finally:
                self.metrics.ended(method, cause)
                told = {"authentication": method, "reason": cause, "incident": incident, "remote": request.remote}
                log.info("notification", extra=told)

    async def _take(self, request: web.Request) -> Receipt:
        if not self._proven(lambda: self.sender.admits(request.headers)):
            raise self._unauthorized()
        body.check_headers(request, limit=self.limits.body)
        if self.busy >= self.limits.concurrency:
            raise _again(Cause.OVERLOADED, f"{self.busy} notifications are being worked on; send this one again")
        self.busy += 1
        try:
            return await self._receive(request)
        finally:
            self.busy -= 1

    async def _receive(self, request: web.Request) -> Receipt:
        try:
            data = await body.read(request, limit=self.limits.body, seconds=self.limits.read_timeout)
        except TimeoutError as error:
            raise _again(Cause.SLOW, f"the body did not arrive in {self.limits.read_timeout:g} seconds") from error
        if not self._proven(lambda: self.sender.vouches(request.headers, data)):
            raise self._unauthorized()
        sent_as = self.sender.notification_id(request.headers)
        before = self.receipts.find(sent_as) if sent_as else None
        if before is not None:
            return Receipt(cause=Cause.ALREADY_RECEIVED, incident=before.incident)
        receipt = await self._record(await self._read(data))
        if sent_as:
            self.receipts.keep(sent_as, receipt)
        return receipt

    async def _read(self, data: bytes) -> Notification:
        try:
            # Redaction of a whole body takes up to a second: on a thread, so that others are answered meanwhile.
            notification = await asyncio.to_thread(
                parse, data, receiver=self.receiver, authentication=self.sender.method
            )
        except ValidationError:
            # What we made of a valid body does not hold our own bounds: a fault in here, not the sender's.
            raise
        except ValueError as error:
            raise web.HTTPUnprocessableEntity(text=str(error)) from error
        self.metrics.understood(notification)
        return notification

    async def _record(self, notification: Notification) -> Receipt:
        try:
            return await self.ledger.record(notification)
        except PraxisError as error:
            log.warning("an Incident was not written", extra={"error": str(error), "reason": error.reason})
            raise _again(Cause.UNAVAILABLE, "the Incident could not be written; send this again") from error

    def _proven(self, proof: Callable[[], bool]) -> bool:
        try:
            return proof()
        except PraxisError as error:
            log.error("nobody can be authenticated", extra={"error": str(error)})  # noqa: TRY400  # told whole
            raise _again(Cause.UNAVAILABLE, "senders cannot be authenticated now; send this again") from error

    def _unauthorized(self) -> web.HTTPUnauthorized:
        return web.HTTPUnauthorized(
            text=f"{self.path} takes notifications with valid {self.sender.method} authentication only",
            headers={"WWW-Authenticate": self.sender.challenge},
        )


def application(*, addresses: Sequence[Address], metrics: Metrics, readiness: Readiness) -> web.Application:
    """Everything that the gateway answers."""
    known = ", ".join(f"POST {address.path}" for address in addresses)

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        wrong = await readiness.wrong()
        return web.Response(text="ok\n") if wrong is None else web.Response(text=wrong + "\n", status=503)

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application(middlewares=[_in_json(known)])
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", exposition)
    for address in addresses:
        app.router.add_post(address.path, address.handle)
    return app


def _in_json(known: str) -> Middleware:
    """Answers in JSON also where aiohttp refuses by itself."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except web.HTTPException as refusal:
            response = _refusal(refusal, known)
        if not request.content.is_eof():
            # What is left of the body would be taken for the next request.
            response.force_close()
        return response

    return middleware


def _refusal(refusal: web.HTTPException, known: str) -> web.Response:
    kept = {name: refusal.headers[name] for name in ("WWW-Authenticate", "Allow") if name in refusal.headers}
    sentences = {
        404: f"nothing is here; notifications go to {known}",
        405: f"this takes {refusal.headers.get('Allow', 'another method')} only; notifications go to {known}",
    }
    sentence = sentences.get(refusal.status, refusal.text or refusal.reason)
    reason = CAUSES.get(refusal.status, refusal.reason)
    return web.json_response({"error": sentence, "reason": reason}, status=refusal.status, headers=kept)


def _again(cause: Cause, sentence: str) -> RetryLater:
    """Of a notification that was not stored through no fault of the sender's: answered 503."""
    return RetryLater(sentence, reason=cause, after=RETRY_AFTER_SECONDS)


def _taken(receipt: Receipt) -> web.Response:
    return web.json_response(
        {
            "incident": receipt.incident,
            "outcome": receipt.outcome,
            "reason": receipt.cause,
            "message": SENTENCES[receipt.cause],
        },
        status=202 if receipt.outcome is Outcome.CREATED else 200,
    )


def _unavailable(cause: Cause, sentence: str) -> web.Response:
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return web.json_response({"error": sentence, "reason": cause}, status=503, headers=headers)
