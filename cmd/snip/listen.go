package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// listen opens the port that a flag names. Its error is one line that says what to do.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--%s %q: another program has the port; stop that or choose another port", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--%s %q: this user may not take the port; choose one above 1023", flag, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--%s %q: this machine does not have the address; leave it out to listen on all", flag, address)
	}
	return nil, fmt.Errorf("--%s %q: %w", flag, address, err)
}

// reachable reports whether other machines may reach the address: any but a
// literal loopback address, or localhost.
func reachable(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.Unmap().IsLoopback()
}
