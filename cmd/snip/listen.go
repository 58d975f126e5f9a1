package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// listen opens the port. Its error is one line that says what to do.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--listen %q: another program has the port; stop that or choose another port", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--listen %q: this user may not take the port; choose one above 1023", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--listen %q: this machine does not have the address; leave it out to listen on all", address)
	}
	return nil, fmt.Errorf("--listen %q: %w", address, err)
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
