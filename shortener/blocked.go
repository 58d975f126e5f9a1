package shortener

import (
	"net/url"
	"path"
	"strings"
)

// site is the place on the web that short links start with, where no
// destination may lead: a link to a link can be a loop.
type site struct {
	host   host   // the zero host is nowhere
	port   uint16 // 0 is the scheme's own
	prefix string // cleaned, "/" when the whole host belongs to it
}

func newSite(public *url.URL) (site, error) {
	p, err := split(public.Scheme + "://" + public.Host)
	if err != nil {
		return site{}, err
	}
	s := site{prefix: path.Clean("/" + public.Path)}
	if s.host, err = parseHost(p.host); err != nil {
		return site{}, err
	}
	s.port, err = p.portNumber()
	return s, err
}

// has reports whether a destination leads there. The ports of HTTP and
// HTTPS count as its own, because a proxy in front commonly answers there, also
// when the program itself is known by another.
func (s site) has(h host, port uint16, typed string) bool {
	if s.host.ascii == "" || s.host.canonical() != h.canonical() {
		return false
	}
	if port != 0 && port != 80 && port != 443 && port != s.port {
		return false
	}
	sent := browserPath(typed)
	return s.below(sent) || s.below(serverPath(sent))
}

func (s site) below(p string) bool {
	return s.prefix == "/" || p == s.prefix || strings.HasPrefix(p, s.prefix+"/")
}

// browserPath returns the path that a browser sends: backslashes are slashes, and
// dot segments, also written %2e, are resolved while empty segments still count.
func browserPath(typed string) string {
	var sent []string
	for segment := range strings.SplitSeq(strings.ReplaceAll(typed, `\`, "/"), "/") {
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".":
		case "..":
			sent = sent[:max(len(sent)-1, 1)] // the first is what precedes the leading slash
		default:
			sent = append(sent, segment)
		}
	}
	return strings.Join(sent, "/")
}

// serverPath returns the path that a server or a proxy may make of the one sent:
// decoded once, repeated slashes joined, dot segments resolved again.
func serverPath(sent string) string {
	var b strings.Builder
	for i := 0; i < len(sent); i++ {
		c := sent[i]
		if c == '%' {
			// A % without two digits stands for itself.
			if text, err := url.PathUnescape(sent[i:min(i+3, len(sent))]); err == nil {
				c = text[0]
				i += 2
			}
		}
		b.WriteByte(c)
	}
	return path.Clean("/" + strings.ReplaceAll(b.String(), `\`, "/"))
}
