#!/bin/sh
# Does what the cluster uses of the entrypoint of PostgreSQL's image: a first start makes
# the database with the superuser's password, and runs the script of the cluster.
set -eu
: "${SOCKETS:=/var/run/postgresql}" "${OWN_PORT:=5432}" "${INIT:=/docker-entrypoint-initdb.d/init.sh}"
if [ ! -e "$PGDATA/PG_VERSION" ]; then
	export POSTGRES_USER=postgres PGHOST="$SOCKETS" PGPORT="$OWN_PORT"
	initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --no-sync >&2
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	pg_ctl start -w -o "-c listen_addresses= -c port=$OWN_PORT -c unix_socket_directories=$SOCKETS" >&2
	trap 'pg_ctl stop -w -m fast >&2' EXIT
	. "$INIT"
	trap - EXIT
	pg_ctl stop -w -m fast >&2
	unset PGHOST PGPORT
fi
exec "$@"
