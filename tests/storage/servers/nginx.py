"""nginx with TLS, serving a folder: an HTTPS server that is not ours."""

from pathlib import Path

from storage.servers.certificates import Certificates
from storage.servers.process import Foreign, find_program, free_port

_CONFIGURATION = """
daemon off;
master_process off;
worker_processes 1;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log {home}/access.log;
    client_body_temp_path {home}/temporary;
    proxy_temp_path {home}/temporary;
    fastcgi_temp_path {home}/temporary;
    uwsgi_temp_path {home}/temporary;
    scgi_temp_path {home}/temporary;
    default_type application/octet-stream;
    sendfile on;
    keepalive_requests 100000;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        root {folder};
    }}
}}
"""


def serve_https(folder: Path, home: Path, certificates: Certificates) -> Foreign:
    """Start nginx; what it writes goes to `home`, which must not lie in the folder."""
    program = find_program("nginx", "nginx-light")
    port, configuration = free_port(), home / "nginx.conf"
    configuration.write_text(
        _CONFIGURATION.format(home=home, folder=folder, port=port, certificate=certificates.server)
    )
    argv = [program, "-c", str(configuration), "-e", str(home / "error.log"), "-p", str(home)]
    return Foreign(argv, port, home / "log")
