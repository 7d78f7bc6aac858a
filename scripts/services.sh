#!/usr/bin/env bash
# Runs a command beside the services its tests need, and stops them when it ends: scripts/services.sh COMMAND [ARGUMENT ...]
#
# The services: PostgreSQL, with all its files in a temporary folder, on a free loopback port, and never as root. It is
# installed when it is missing and this is root on Debian. The command finds its address in BURNISH_TEST_POSTGRES.
set -euo pipefail

readonly ACCOUNT=postgres # whom PostgreSQL runs as when this is root
readonly ATTEMPTS=5       # another program may take the free port before PostgreSQL does

fail() {
    echo "services.sh: $*" >&2
    exit 1
}

# The folder of PostgreSQL's programs: Debian's newest version, else that of another installation.
programs() {
    local folder
    folder=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail --lines=1)
    if [[ -x $folder/initdb ]]; then
        echo "$folder"
    else
        folder=$(command -v initdb) && dirname "$folder"
    fi
}

# Debian's package makes and starts a server of its own unless it is told not to.
install_postgresql() {
    [[ $EUID -eq 0 ]] || fail "PostgreSQL is not installed, and only root can install it: apt-get install postgresql"
    command -v apt-get >/dev/null || fail "PostgreSQL is not installed, nor is apt-get: install its initdb and pg_ctl"
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/burnish.conf
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update --quiet=2
        apt-get install --quiet=2 --yes --no-install-recommends postgresql
    } >&2
}

# Run a program as somebody who is not root, in a folder everybody may enter.
unprivileged() {
    if [[ $EUID -eq 0 ]]; then
        (cd / && runuser --user "$ACCOUNT" -- "$@")
    else
        (cd / && "$@")
    fi
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

stop() {
    if [[ -e $folder/data/postmaster.pid ]]; then
        unprivileged "$bin/pg_ctl" stop --pgdata="$folder/data" --mode=immediate --silent >/dev/null || true
    fi
    rm -rf "$folder"
}

[[ $# -gt 0 ]] || fail "no command is given: scripts/services.sh COMMAND [ARGUMENT ...]"
bin=$(programs) || { install_postgresql && bin=$(programs); } || fail "PostgreSQL could not be installed"
folder=$(mktemp --directory --tmpdir burnish-services.XXXXXX)
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The password holds what an address must spell otherwise, so that the tests meet both spellings.
secret="pass-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')"
mkdir "$folder/data"
touch "$folder/password"
chmod 600 "$folder/password"
echo "$secret@:/" >"$folder/password"
if [[ $EUID -eq 0 ]]; then
    chown "$ACCOUNT" "$folder/data" "$folder/password"
fi
chmod 711 "$folder"
unprivileged "$bin/initdb" --pgdata="$folder/data" --username=burnish --pwfile="$folder/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync >"$folder/initdb.log" 2>&1 ||
    fail "initdb failed: $(tail --lines=1 "$folder/initdb.log")"

started=false
for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    port=$(free_port)
    options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories= -c fsync=off -c max_connections=200"
    if unprivileged "$bin/pg_ctl" start --pgdata="$folder/data" --log="$folder/data/server.log" --wait --silent \
        --options="$options" >/dev/null 2>&1; then
        started=true
        break
    fi
done
$started || fail "PostgreSQL did not start: $(tail --lines=1 "$folder/data/server.log")"

export BURNISH_TEST_POSTGRES="postgresql+asyncpg://burnish:$secret%40%3A%2F@127.0.0.1:$port/postgres"
status=0
"$@" || status=$?
exit "$status"
