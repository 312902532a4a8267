# PostgreSQL on localhost:5432 and its usual socket, empty, without passwords; runs as root, from start_postgresql.
# Its databases and users are those named in the tests' variables, and `postgres`, `mergemill` and `test`.
    local bin data pair value user database
    bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    [ -x "$bin/initdb" ] || return 1
    install -d -o postgres -g postgres -m 2775 /var/run/postgresql
    data=$(mktemp -d /var/tmp/postgresql.XXXXXXXX) && chown postgres "$data" || return 1
    as_postgres() {
        setpriv --reuid=postgres --regid=postgres --init-groups env -i PATH="$bin:/usr/bin:/bin" LANG=C.UTF-8 HOME="$data" "$@"
    }
    as_postgres initdb -D "$data/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync || return 1
    as_postgres pg_ctl -D "$data/data" -l "$data/log" -w -t 60 start -o "-c listen_addresses=localhost -c fsync=off \
-c full_page_writes=off -c unix_socket_directories=/var/run/postgresql,/tmp" < /dev/null || { cat "$data/log"; return 1; }
    local users=(mergemill test) databases=(mergemill test)
    for pair in "${environment[@]}"; do
        value="${pair#*=}"
        case "${pair%%=*}" in
            PGUSER | POSTGRES_USER | *DB_USER | *DATABASE_USER | *DB_USERNAME) users+=("$value") ;;
            PGDATABASE | POSTGRES_DB | *DB_NAME | *DATABASE_NAME) databases+=("$value") ;;
            *DATABASE_URL | *DB_URL | *DSN | *_URI)
                [[ "$value" == postgres* ]] || continue
                value="${value#*://}"
                [[ "$value" != *@* ]] || { user="${value%%@*}" && users+=("${user%%:*}") && value="${value#*@}"; }
                [[ "$value" != */* ]] || { database="${value#*/}" && databases+=("${database%%\?*}"); }
                ;;
        esac
    done
    for user in "${users[@]}"; do
        [ -z "$user" ] || as_postgres createuser -h localhost -U postgres --superuser "$user" || echo "user $user already exists"
    done
    for database in "${databases[@]}"; do
        [ -z "$database" ] || as_postgres createdb -h localhost -U postgres "$database" || echo "database $database already exists"
    done
