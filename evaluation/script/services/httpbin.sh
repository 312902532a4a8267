# httpbin, which answers HTTP requests with what they contain, on localhost:80 and, for the tests, in place of httpbin.org;
# also on the ports that the tests' variables name (http://localhost:8080); started by root, from start_httpbin.
    local pair port ports=(80)
    for pair in "${environment[@]}"; do
        [[ "${pair#*=}" =~ ^http://(localhost|127\.0\.0\.1|httpbin(\.org)?):([0-9]+)(/|$) ]] && ports+=("${BASH_REMATCH[3]}")
    done
    printf '127.0.0.1\thttpbin httpbin.org www.httpbin.org\n' >> /etc/hosts || return 1
    for port in "${ports[@]}"; do
        setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all,+net_bind_service \
            --ambient-caps=-all,+net_bind_service env -i PATH=/usr/bin:/bin LANG=C.UTF-8 \
            /usr/bin/python3 -I -m httpbin.core --host 127.0.0.1 --port "$port" < /dev/null &
    done
    for port in "${ports[@]}"; do
        for _ in {1..200}; do
            (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && continue 2
            sleep 0.1
        done
        return 1
    done
