package web

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"snip/quota"
	"snip/shortener"
)

// payer returns who pays for a creation: the holder of the key that the request
// shows, or else the address that it comes from. A key that is not known is
// refused, and chooses no bucket.
func (s *server) payer(r *http.Request) (quota.Client, error) {
	switch text, shown := bearer(r); {
	case shown:
		key, ok := s.service.FindKey(text)
		if !ok {
			wrong := say("problem.key_unknown")
			if s.keysOnly { // without a key it would be refused as well
				wrong = say("problem.key")
			}
			return quota.Client{}, unauthorized(wrong)
		}
		return key.Client(), nil
	case s.keysOnly:
		return quota.Client{}, unauthorized(say("problem.key_needed"))
	}
	caller := s.clients.find(r)
	s.proxies.observe(caller, r)
	if caller.fault != nil {
		return quota.Client{}, caller.fault
	}
	return caller.client, nil
}

// holder returns who wants to read or to manage a link. Reading costs no client
// anything, so that it may have none.
func (s *server) holder(r *http.Request, reading bool) (shortener.Holder, error) {
	text, shown := bearer(r)
	if !shown || text == "" {
		return shortener.Holder{}, unauthorized(say("problem.token"))
	}
	if strings.HasPrefix(string(text), shortener.KeyPrefix) {
		key, err := s.key(r)
		return shortener.Holder{Key: key.ID, Client: key.Client()}, err
	}
	caller := s.clients.find(r)
	if caller.fault != nil && !reading {
		return shortener.Holder{}, caller.fault
	}
	return shortener.Holder{Token: text, Client: caller.client}, nil
}

// key returns the key that the request must show.
func (s *server) key(r *http.Request) (shortener.Key, error) {
	if text, shown := bearer(r); shown {
		if key, ok := s.service.FindKey(text); ok {
			return key, nil
		}
	}
	return shortener.Key{}, unauthorized(say("problem.key"))
}

// bearer returns what the Authorization header shows (RFC 6750, section 2.1): a
// link's token or a key. It is read from there alone, because in a path or a query
// it would end up in logs. A header that names the scheme or holds a key, and is
// not "Bearer", a space and the text, shows the empty text: taken for no key, it
// would be paid for by the address. Other schemes are a proxy's business.
func bearer(r *http.Request) (text shortener.Token, shown bool) {
	const most = 256 // bytes; all that is known here is shorter
	for _, line := range r.Header["Authorization"] {
		scheme := line
		if end := strings.IndexFunc(line, func(c rune) bool { return !httpguts.IsTokenRune(c) }); end >= 0 {
			scheme = line[:end]
		}
		switch {
		case !strings.EqualFold(scheme, "Bearer"):
			if holdsKey(line) {
				return "", true
			}
			continue
		case shown || len(line) > most:
			return "", true
		}
		rest, ok := strings.CutPrefix(line[len(scheme):], " ")
		if !ok {
			rest = ""
		}
		text, shown = shortener.Token(strings.TrimLeft(rest, " ")), true
	}
	return text, shown
}

// holdsKey reports whether a line that names another scheme holds a key, also as the user
// name or password of Basic, where base64 hides it.
func holdsKey(line string) bool {
	basic := http.Request{Header: http.Header{"Authorization": {line}}}
	user, password, _ := basic.BasicAuth()
	return strings.Contains(strings.ToLower(line+" "+user+" "+password), shortener.KeyPrefix)
}

func unauthorized(m message) *problem {
	p := newProblem(http.StatusUnauthorized, "unauthorized", m)
	p.authenticate = "Bearer"
	return p
}
