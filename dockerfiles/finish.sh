#!/bin/sh
# Finishes a base made by debootstrap or pulled from a registry. Runs as root inside it: finish.sh PROBE [PYTHON]
set -eu
probe=$1
export MERGEMILL_PYTHON="${2:-}"

# Tests run as this user; it owns /testbed and its home and nothing else.
id mergemill >/dev/null 2>&1 || useradd --uid 1000 --user-group --create-home --shell /bin/bash mergemill
git config --system --replace-all safe.directory '*'

# Manuals are not needed in a container. Licences stay.
cat >/etc/dpkg/dpkg.cfg.d/mergemill <<'CFG'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
CFG
# Frozen mirrors serve lists beyond their date; signatures are still checked.
echo 'Acquire::Check-Valid-Until "false";' >/etc/apt/apt.conf.d/80mergemill
find /usr/share/doc -depth -type f ! -name copyright -delete 2>/dev/null || true
rm -rf /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/lintian
mkdir -p /usr/share/man/man1 # Java packages install links into it, and fail without it
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old /var/log/*.log
# The largest files of a compiler that no project's build needs.
find /usr/lib -name 'libpython*.a' -delete
rm -f /usr/bin/*lto-dump* /usr/lib/gcc/*/*/lib*san.a /usr/lib/*/libasan.so* /usr/lib/*/libtsan.so* /usr/lib/*/liblsan.so*

sh -c "$probe"
python3 -I -c 'import json, xml.etree.ElementTree'
setpriv --version >/dev/null
bash --version >/dev/null
