# Redis on localhost:6379, empty, without a password, kept in memory; runs as root, from start_redis.
    local data
    data=$(mktemp -d /var/tmp/redis.XXXXXXXX) && chown redis "$data" || return 1
    setpriv --reuid=redis --regid=redis --init-groups redis-server --daemonize yes --dir "$data" --save '' \
        --appendonly no --bind 127.0.0.1 -::1 --protected-mode no || return 1
    for _ in {1..100}; do
        [ "$(redis-cli ping 2>/dev/null)" != PONG ] || return 0
        sleep 0.1
    done
    return 1
