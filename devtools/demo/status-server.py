#!/usr/bin/env python3
"""status-server.py: serves the status page of a server on 127.0.0.1, and makes it again while someone looks.

SERVER, a connection string, and libpq's variables name the server. PORT is the port of the page (8765). The content of a request
never reaches the server: psql runs one fixed statement, in a session that may not write, and at most every five seconds.
"""

import html
import os
import socketserver
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

PORT = int(os.environ.get("PORT") or 8765)
PSQL = os.environ.get("PSQL", "psql")
# In seconds: the age up to which a page is kept, the browser's interval, the limit for psql, and the limit for a silent client.
KEPT, REFRESH, LIMIT, SILENCE = 5, 30, 20, 5
# The most bytes that are read from psql.
LARGEST = 8 * 1024 * 1024
COMMAND = [
    PSQL, "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1", "--no-password",
    f"--dbname={os.environ.get('SERVER', '')}", "--command=SELECT snowflake_ids.status_page()",
]
OPTIONS = "-c default_transaction_read_only=on -c statement_timeout=15s"


def ask():
    """The page and its HTTP status, as psql gives it."""
    environment = {**os.environ, "PGOPTIONS": OPTIONS, "PGCONNECT_TIMEOUT": "5", "PGCLIENTENCODING": "UTF8"}
    try:
        done = subprocess.run(COMMAND, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 503, plain(str(error))
    if done.returncode != 0 or len(done.stdout) > LARGEST:
        return 503, plain(done.stderr[:4000].decode("utf-8", "replace"))
    return 200, done.stdout


def plain(reason):
    """A page that says why there is no status page."""
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>No status page</title>'
        f"<h1>No status page</h1><pre>{html.escape(reason)}</pre></html>\n"
    ).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of / with the page."""

    server_version, sys_version, timeout = "status", "", SILENCE
    made, answer = 0.0, (503, b"")

    def do_GET(self):
        """The page."""
        self.reply(True)

    def do_HEAD(self):
        """Its head."""
        self.reply(False)

    def reply(self, whole):
        """Sends the page. Another site whose name points to this address gets nothing to read."""
        if self.headers.get("Host") not in (f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
            return self.send_error(403, "Ask for 127.0.0.1")
        if self.path != "/":
            return self.send_error(404)
        if time.monotonic() - Handler.made > KEPT or not Handler.answer[1]:
            Handler.answer = ask()
            Handler.made = time.monotonic()
        status, page = Handler.answer
        self.send_response(status)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(page))), ("Cache-Control", "no-store"),
            ("Refresh", str(REFRESH)), ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if whole:
            self.wfile.write(page)

    def log_message(self, *_):
        """Logs nothing, because the browser asks for the page every half minute."""


class Server(HTTPServer):
    """A server on loopback that looks up no name for its address."""

    allow_reuse_address = True

    def server_bind(self):
        """Binds like a plain TCP server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


def main():
    """Serves one request after another until an interrupt."""
    try:
        with Server(("127.0.0.1", PORT), Handler) as server:
            print(f"The status page is at http://127.0.0.1:{server.server_port}/ until you press Ctrl-C.", flush=True)
            server.serve_forever()
    except KeyboardInterrupt:
        pass
    except OSError as error:
        sys.exit(f"Port {PORT} cannot be served: {error.strerror}. PORT= chooses another one.")


main()
