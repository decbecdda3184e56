package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const loopback = "127.0.0.1"

// choosePort returns the port a part listens on. A wanted port is kept and
// must be free; the well-known one makes way for any free one when taken. Both
// 0 asks for any free one. The flag names the part in errors.
func choosePort(wanted, wellKnown int, flag string) (int, error) {
	switch {
	case wanted < 0 || wanted > 65535:
		return 0, fmt.Errorf("-%s %d is no port: want 1 to 65535", flag, wanted)
	case wanted != 0 && !isFree(wanted):
		return 0, fmt.Errorf("-%s %d is taken by another program: name another port, or none to have a free one chosen", flag, wanted)
	case wanted != 0:
		return wanted, nil
	case wellKnown != 0 && isFree(wellKnown):
		return wellKnown, nil
	}
	return freePort()
}

// isFree reports whether nothing listens on port. Binding alone does not tell:
// where a wildcard listener exists, some systems still let a program bind
// loopback.
func isFree(port int) bool {
	address := localAddress(port)
	if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		_ = conn.Close()
		return false
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// freePort asks the system for a port that is free now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", localAddress(0))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("find a free port: the listener has no TCP address")
	}
	return address.Port, nil
}

// localAddress is host and port of a part.
func localAddress(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
