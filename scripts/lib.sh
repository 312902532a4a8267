# Steps that set up a machine. Sourced by scripts/setup, scripts/demo and scripts/test.
# A step does nothing where its result exists. Where a step is impossible, it prints one line with the command to run and
# exits with 4.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
dockerd_log=${MERGEMILL_DOCKERD_LOG:-/var/log/mergemill-dockerd.log}

print() { printf '%s\n' "$*" >&2; }

# lacks MESSAGE COMMAND: report what this machine lacks and exit
lacks() {
    print "$1. To fix it: $2"
    exit 4
}

# apt PACKAGE...: install Debian packages, or print how
apt() {
    local line="apt-get update && apt-get install -y --no-install-recommends $*"
    command -v apt-get >/dev/null || lacks "$* is missing and this is not Debian" "install $* with your package manager"
    [ "$(id -u)" = 0 ] || lacks "$* is missing and only root can install it" "sudo sh -c '$line'"
    print "installing $*"
    # Only Debian's own paths: another tool named apt-get may come first on PATH.
    if ! (export DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
          apt-get install -y -qq --no-install-recommends "$@" || {
              apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
          }) >/tmp/mergemill-apt.$$ 2>&1; then
        tail -n 3 "/tmp/mergemill-apt.$$" >&2
        rm -f "/tmp/mergemill-apt.$$"
        lacks "$* could not be installed" "$line"
    fi
    rm -f "/tmp/mergemill-apt.$$"
}

# --- environment: .venv ---------------------------------------------------------------------------------------------

# Print a Python >= 3.11; the system's own is preferred.
find_python() {
    local candidate
    for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

env_fingerprint() { cat "$root/pyproject.toml" "$root/requirements.lock" | sha256sum | cut -d' ' -f1; }

env_is_good() {
    [ -x "$venv/bin/mergemill" ] && "$venv/bin/python" -c '' 2>/dev/null &&
        [ "$(cat "$venv/mergemill-fingerprint" 2>/dev/null)" = "$(env_fingerprint)" ]
}

setup_env() {
    if env_is_good; then return; fi
    command -v git >/dev/null || apt git
    local python
    python=$(find_python) || { apt python3 python3-venv; python=$(find_python); } ||
        lacks "there is no Python 3.11 or newer" "apt-get install -y python3 python3-venv"
    if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null || apt python3-venv
        print "making $venv"
        "$python" -m venv --clear "$venv" || lacks "$python cannot make an environment" "apt-get install -y python3-venv"
    fi
    if [ ! -x "$venv/bin/uv" ]; then
        "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip -q
        "$venv/bin/python" -m pip install -q --disable-pip-version-check 'uv>=0.5' || no_index
    fi
    print "installing the packages of requirements.lock"
    "$venv/bin/uv" pip install -q --compile-bytecode --python "$venv/bin/python" --require-hashes -r "$root/requirements.lock" || no_index
    "$venv/bin/uv" pip install -q --python "$venv/bin/python" --no-deps -e "$root" || no_index
    env_fingerprint >"$venv/mergemill-fingerprint"
}

no_index() {
    lacks "PyPI could not be reached or a package is missing" \
        "set SSL_CERT_FILE, HTTPS_PROXY or PIP_INDEX_URL as your network needs, then: scripts/setup env"
}

# --- Docker engine ----------------------------------------------------------------------------------------------------

# Return whether an engine answers at DOCKER_HOST. The client binary is not needed.
engine_answers() {
    local python
    python=$(find_python) || python=$venv/bin/python
    case ${DOCKER_HOST:-unix:///var/run/docker.sock} in
        unix://*) "$python" - "${DOCKER_HOST:-unix:///var/run/docker.sock}" <<'PY' 2>/dev/null ;;
import socket, sys
with socket.socket(socket.AF_UNIX) as engine:
    engine.settimeout(10)
    engine.connect(sys.argv[1].removeprefix("unix://"))
    engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
    sys.exit(b" 200 " not in engine.recv(64))
PY
        *) "$venv/bin/python" -c 'import docker; docker.from_env(version="auto").ping()' 2>/dev/null ;;
    esac
}

setup_docker() {
    if engine_answers; then return; fi
    if [ -n "${DOCKER_HOST:-}" ] && [ "$DOCKER_HOST" != unix:///var/run/docker.sock ]; then
        lacks "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST" "start it, or: unset DOCKER_HOST; scripts/setup docker"
    fi
    if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then
        lacks "this user may not use the Docker engine" "sudo usermod -aG docker $(id -un), then log in again"
    fi
    [ "$(id -u)" = 0 ] || lacks "no Docker engine answers and only root can start one" "sudo scripts/setup docker"
    PATH=$PATH:/usr/sbin:/sbin command -v dockerd >/dev/null || apt docker.io iptables
    if engine_answers; then return; fi
    start_engine
}

start_engine() {
    local engine=
    if [ -d /run/systemd/system ]; then
        systemctl start docker || lacks "systemd cannot start Docker" "journalctl -u docker"
    else
        # The pid file of a dead engine may name another process by now.
        if [ -f /var/run/docker.pid ] && ! grep -qs dockerd "/proc/$(cat /var/run/docker.pid)/comm"; then
            rm -f /var/run/docker.pid
        fi
        print "starting dockerd (log: $dockerd_log)"
        PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH setsid dockerd >"$dockerd_log" 2>&1 </dev/null &
        engine=$!
    fi
    local waited
    for waited in $(seq 1 120); do
        if engine_answers; then return; fi
        if [ -n "$engine" ] && ! kill -0 "$engine" 2>/dev/null; then break; fi  # it exited
        sleep 0.5
    done
    grep -iE 'error|fail' "$dockerd_log" 2>/dev/null | tail -n 2 >&2
    lacks "the Docker engine does not answer ($((waited / 2)) s)" "read $dockerd_log, then: scripts/setup docker"
}

# --- base image -------------------------------------------------------------------------------------------------------

# Install debootstrap, which makes base images where no registry answers.
setup_debian() {
    if [ "${MERGEMILL_BASE_SOURCE:-auto}" != registry ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        PATH=$PATH:/usr/sbin command -v debootstrap >/dev/null || apt debootstrap
    fi
}

setup_base() {
    setup_debian
    "$venv/bin/mergemill" images bootstrap || exit $?
}

# --- PostgreSQL -------------------------------------------------------------------------------------------------------

# For the tests of PostgreSQL, which start a server of their own.
setup_postgres() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || apt postgresql
}

# --- a registry of images ---------------------------------------------------------------------------------------------

# For the tests of registries, which start one of their own; the service of Debian's package is disabled.
setup_registry() {
    if PATH=$PATH:/usr/bin command -v docker-registry >/dev/null; then return; fi
    apt docker-registry
    if [ -d /run/systemd/system ]; then systemctl disable -q --now docker-registry || :; fi
}

# --- a clock that jumps -----------------------------------------------------------------------------------------------

# For the test of a clock that jumps: a library between a process and the machine's clock.
setup_faketime() {
    compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || apt libfaketime
}

# --- a browser --------------------------------------------------------------------------------------------------------

# For the tests of the web page and its screenshots.
setup_chromium() {
    if PATH=$PATH:/usr/bin command -v chromium >/dev/null; then return; fi
    apt chromium fonts-dejavu-core
}

# --- namespaces -------------------------------------------------------------------------------------------------------

# For the tests of the sandbox that needs no engine, and of what is run in it.
setup_bubblewrap() {
    command -v bwrap >/dev/null || apt bubblewrap
}

# --- torch ------------------------------------------------------------------------------------------------------------

# For the tests of training objectives: an environment of its own in the user's cache, 4 GB.
setup_torch() {
    "$venv/bin/python" -m tests.client.torch_environment ||
        lacks "torch could not be installed from PyPI" "$venv/bin/python -m tests.client.torch_environment"
}

# --- an S3 server -----------------------------------------------------------------------------------------------------

# For the tests of shared artifacts: versitygw, which Go builds into the user's cache, 60 MB.
setup_s3() {
    "$venv/bin/python" -m tests.s3_server ||
        lacks "the S3 server versitygw could not be built" "install Go 1.21 or newer, then: $venv/bin/python -m tests.s3_server"
}

# --- deployment -------------------------------------------------------------------------------------------------------

# For the tests of deploy/: they read the compose file and render the chart.
setup_compose() {
    PATH=$PATH:/usr/bin command -v docker-compose >/dev/null || apt docker-compose
}

helm_version=v3.19.0

setup_helm() {
    if PATH=$PATH:$HOME/go/bin command -v helm >/dev/null; then return; fi
    command -v go >/dev/null || lacks "helm is missing and there is no Go to build it" "install helm 3, or Go"
    print "building helm $helm_version, some minutes"
    GOBIN=$HOME/go/bin go install "helm.sh/helm/v3/cmd/helm@$helm_version" >/dev/null 2>&1 ||
        lacks "helm could not be built" "go install helm.sh/helm/v3/cmd/helm@$helm_version"
}

# --- Kubernetes -------------------------------------------------------------------------------------------------------

kubernetes_version=1.34.4
kubernetes_programs="kube-apiserver kube-controller-manager kube-scheduler kubelet"
kubernetes_folder=${XDG_CACHE_HOME:-$HOME/.cache}/mergemill-tests/kubernetes-$kubernetes_version

# For the tests of pods, which start a cluster of one node: its programs are compiled from the Go module k8s.io/kubernetes
# into the user's cache, once; etcd, containerd, runc and the CNI plugins are Debian's.
setup_kubernetes() {
    local path=$PATH:/usr/sbin:/sbin
    PATH=$path command -v etcd >/dev/null || apt etcd-server
    PATH=$path command -v containerd >/dev/null && PATH=$path command -v runc >/dev/null || apt containerd runc
    [ -x /usr/lib/cni/bridge ] || apt containernetworking-plugins
    setup_registry
    local program
    for program in $kubernetes_programs pause; do
        if [ ! -x "$kubernetes_folder/$program" ]; then compile_kubernetes; return; fi
    done
}

compile_kubernetes() {
    PATH=$PATH:/usr/local/go/bin command -v go >/dev/null ||
        lacks "Go is missing" "install Go 1.24 or newer (https://go.dev/dl), then: scripts/test kubernetes"
    print "compiling Kubernetes $kubernetes_version into $kubernetes_folder (10 minutes with two processors)"
    mkdir -p "$kubernetes_folder"
    (
        set -e
        export PATH=$PATH:/usr/local/go/bin GOFLAGS=-buildvcs=false
        exec 9>"$kubernetes_folder.lock"
        flock 9
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        cd "$work"
        source=$(go mod download -json "k8s.io/kubernetes@v$kubernetes_version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
        # The module names its own parts by folders that only its repository has; they are published with v0.
        {
            printf 'module cluster\n\ngo 1.24\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$kubernetes_version"
            sed -n "s#^\t\(k8s.io/[a-z-]*\) => ./staging.*#\t\1 => \1 v0${kubernetes_version#1}#p" "$source/go.mod"
            printf ')\n'
        } >go.mod
        {
            printf 'package cluster\n\nimport (\n'
            printf '\t_ "k8s.io/kubernetes/cmd/%s/app"\n' $kubernetes_programs
            printf ')\n'
        } >programs.go
        go mod tidy
        info=k8s.io/component-base/version
        for program in $kubernetes_programs; do
            go build -trimpath -ldflags "-s -w -X $info.gitVersion=v$kubernetes_version -X $info.gitMajor=1 -X $info.gitMinor=34" \
                -o "$program.new" "k8s.io/kubernetes/cmd/$program"
            mv "$program.new" "$kubernetes_folder/$program"
        done
        # What holds the namespaces of a pod.
        cat >pause.go <<'GO'
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
GO
        CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$kubernetes_folder/pause" pause.go
    ) >"$kubernetes_folder/log" 2>&1 || {
        tail -n 3 "$kubernetes_folder/log" >&2
        lacks "Kubernetes could not be compiled" "read $kubernetes_folder/log; Go modules are fetched from GOPROXY"
    }
}
