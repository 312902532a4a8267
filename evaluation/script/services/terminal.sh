# A terminal of 80 columns and 24 lines, in which the tests run and which they can open as /dev/tty; from start_terminal.
    cat > "$report/terminal.py" <<'END_OF_PROGRAM' || return 1
import fcntl, os, select, signal, struct, sys, termios

master, slave = os.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
modes = termios.tcgetattr(slave)
modes[1] &= ~termios.OPOST  # the output stays as the tests write it
modes[3] &= ~termios.ECHO
termios.tcsetattr(slave, termios.TCSANOW, modes)
os.write(master, b"\x04")  # the first read finds the end of the input, as from /dev/null
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    os.close(master)
    os.close(slave)
    for number in range(1, signal.NSIG):  # Python ignores some, and a shell those of what it starts in the background
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, RuntimeError, ValueError):  # of SIGKILL and SIGSTOP, and of those of the C library
            pass
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(slave)
ended, status = 0, 0
while True:
    if select.select([master], [], [], 0.1)[0]:
        try:
            text = os.read(master, 65536)
        except OSError:  # the last process closed its side
            text = b""
        if not text:
            break
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    elif ended:
        break
    else:
        ended, status = os.waitpid(child, os.WNOHANG)
if not ended:
    status = os.waitpid(child, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
END_OF_PROGRAM
    chmod 644 "$report/terminal.py"
    command=(/usr/bin/python3 -I -S -B "$report/terminal.py" "${command[@]}")
