package shortener

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"snip/quota"
)

// Blocklist says which hosts links may not lead to. It is asked at every redirect.
type Blocklist interface {
	// Blocks reports whether the host, in lower case and as punycode, is listed or
	// lies below a domain that is.
	Blocks(host string) bool

	// Ready returns why it cannot be relied on yet, or nil. Until then no links are
	// made.
	Ready() error
}

// Block is a host that an operator lets no link lead to, with its subdomains.
type Block struct {
	Host  string    `json:"-"` // in lower case, an international one as punycode
	Note  string    `json:"note,omitempty"`
	SetAt time.Time `json:"set_at"` // UTC
}

// ErrInvalidBlock means that a host cannot be blocked.
var ErrInvalidBlock = errors.New("invalid block")

// AddBlock blocks a host and its subdomains, at once: no link can be made that
// leads there, and those that do lead nowhere until the block is removed. The
// errors are [ErrInvalidBlock], [ErrEntryExists], or wrap [ErrUnavailable].
func (s *Service) AddBlock(ctx context.Context, host, note string) (Block, error) {
	name, err := canonicalHost(host)
	switch {
	case err != nil:
		return Block{}, fmt.Errorf("%w: %w", ErrInvalidBlock, err)
	case !strings.ContainsAny(name, ".:"):
		return Block{}, fmt.Errorf("%w: %q would block every host that ends in it", ErrInvalidBlock, name)
	}
	b := Block{Host: name, Note: note, SetAt: s.instant()}
	value, err := json.Marshal(b)
	if err != nil {
		return Block{}, err
	}
	return b, s.changeBlock(ctx, "block", b, EntryChange{Entry{EntryBlock, name, string(value)}, AddEntry})
}

// RemoveBlock lets links lead to a host again, at once. The errors are
// [ErrInvalidBlock], [ErrNoEntry], or wrap [ErrUnavailable].
func (s *Service) RemoveBlock(ctx context.Context, host, note string) error {
	name, err := canonicalHost(host)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidBlock, err)
	}
	return s.changeBlock(ctx, "unblock", Block{Host: name, Note: note}, EntryChange{Entry{Kind: EntryBlock, Name: name}, RemoveEntry})
}

func (s *Service) changeBlock(ctx context.Context, action string, b Block, change EntryChange) error {
	_, err := s.act(ctx, Act{Line: AuditLine{Action: action, Target: b.Host, Note: b.Note}, Entries: []EntryChange{change}})
	if errors.Is(err, ErrEntryExists) || errors.Is(err, ErrNoEntry) {
		return fmt.Errorf("block of %s %w", b.Host, err)
	}
	return err
}

// Blocks returns every block of the operators', in the order of their hosts.
func (s *Service) Blocks(ctx context.Context) ([]Block, error) {
	entries, err := s.store.Entries(ctx, EntryBlock)
	if err != nil {
		return nil, refusalOf(err)
	}
	blocks := make([]Block, len(entries))
	for i, e := range entries {
		if blocks[i], err = blockOf(e); err != nil {
			return nil, fmt.Errorf("%w: block of %s: %w", ErrUnavailable, e.Name, err)
		}
	}
	return blocks, nil
}

func blockOf(e Entry) (b Block, err error) {
	err = json.Unmarshal([]byte(e.Value), &b)
	b.Host = e.Name
	return b, err
}

// blockedHosts are the operators' blocks, in memory.
type blockedHosts map[string]bool

// Blocks reports whether the host is blocked, or lies below one that is.
func (b blockedHosts) Blocks(host string) bool {
	for len(b) > 0 {
		if b[host] {
			return true
		}
		_, parent, below := strings.Cut(host, ".")
		if !below {
			return false
		}
		host = parent
	}
	return false
}

// ErrBlocklist means that a list of hosts was never loaded, so that nobody can tell
// where links may lead. It is a kind of [ErrUnavailable].
var ErrBlocklist = fmt.Errorf("%w: a list of hosts is missing", ErrUnavailable)

func (s *Service) blocklistReady() error {
	if s.blocklist == nil {
		return nil
	}
	if err := s.blocklist.Ready(); err != nil {
		return fmt.Errorf("%w: %w", ErrBlocklist, err)
	}
	return nil
}

// blocks reports whether a destination's host is blocked, by an operator or a list.
func (s *Service) blocks(host string) bool {
	return host != "" && (s.set.Load().blocked.Blocks(host) || s.blocklist != nil && s.blocklist.Blocks(host))
}

// canonicalHost reads a host as an operator types it.
func canonicalHost(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil { // an IPv6 address without brackets
		return quota.EmbeddedIPv4(addr).String(), nil
	}
	host, err := CanonicalHost(strings.TrimPrefix(strings.TrimPrefix(text, "*"), "."))
	if err != nil {
		return "", fmt.Errorf("%q is no host such as evil.example, and no address", text)
	}
	return host, nil
}
