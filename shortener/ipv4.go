package shortener

import (
	"net/netip"
	"strconv"
	"strings"
)

// endsInNumber reports whether browsers take a host for an IPv4 address, good or
// bad: its last label is digits or a hexadecimal number. It is the URL Standard's
// "ends in a number checker". The host is in lower case, without outer dots.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	digits, hex := strings.CutPrefix(last, "0x")
	return hex && strings.Trim(digits, "0123456789abcdef") == ""
}

// parseIPv4 reads every spelling that the URL Standard's "IPv4 parser" does, and
// with it the browsers: 127.0.0.1, but also 127.1, 0x7f.1, 0177.0.0.1 and
// 2130706433. netip reads only the first of these, so that a rule built on it
// would let the others through.
func parseIPv4(name string) (netip.Addr, bool) {
	labels := strings.Split(name, ".")
	if len(labels) > 4 {
		return netip.Addr{}, false
	}
	var bytes [4]byte
	for i, label := range labels {
		n, ok := parseIPv4Number(label)
		if !ok {
			return netip.Addr{}, false
		}
		if i < len(labels)-1 {
			if n > 0xff {
				return netip.Addr{}, false
			}
			bytes[i] = byte(n)
			continue
		}
		// The last number fills all the bytes that are left.
		for j := 3; j >= i; j-- {
			bytes[j] = byte(n)
			n >>= 8
		}
		if n > 0 {
			return netip.Addr{}, false
		}
	}
	return netip.AddrFrom4(bytes), true
}

// parseIPv4Number reads decimal, octal after 0 and hexadecimal after 0x, where a
// bare 0x is zero.
func parseIPv4Number(label string) (uint64, bool) {
	if label == "0x" {
		return 0, true
	}
	base := 10
	if digits, hex := strings.CutPrefix(label, "0x"); hex {
		label, base = digits, 16
	} else if len(label) > 1 && label[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(label, base, 64)
	return n, err == nil
}
