# An X server without a screen on display :99, for tests that open windows; runs as root, from start_xvfb.
    install -d -m 1777 /tmp/.X11-unix || return 1
    setpriv --reuid=nobody --regid=nogroup --clear-groups Xvfb :99 -screen 0 1280x1024x24 -ac -nolisten tcp < /dev/null &
    for _ in {1..100}; do
        [ ! -S /tmp/.X11-unix/X99 ] || return 0
        sleep 0.1
    done
    return 1
