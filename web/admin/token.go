package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"snip/quota"
)

const (
	// WrongTokens is how many wrong tokens in a row a peer may show. Another is
	// allowed each wrongPace. Nobody mistypes
	// that many.
	WrongTokens = 10
	wrongPace   = 10 * time.Second
	// mostPeers bounds the peers that are kept apart, and so the memory: 3 MiB. Of
	// more, some get new tries. Refusing those that find no room instead would let
	// many peers shut the operator out.
	mostPeers = 16_384
	// tokenLogPause is how often a line about wrong tokens is logged at most.
	tokenLogPause = time.Minute
)

// TokensRefused counts the tokens that have not opened the listener. It is safe for
// concurrent use, and nil has counted none.
type TokensRefused struct {
	Wrong     atomic.Int64 // that were compared
	Throttled atomic.Int64 // that were not: their peer had shown too many wrong ones
}

// Total returns the number of all of them.
func (t *TokensRefused) Total() int64 {
	if t == nil {
		return 0
	}
	return t.Wrong.Load() + t.Throttled.Load()
}

// gate compares tokens, and slows down each peer that shows wrong ones. Only wrong
// ones count, so programs may show the right one as often as they like.
type gate struct {
	token   [sha256.Size]byte
	refused *TokensRefused
	now     func() time.Time
	log     *slog.Logger

	mu    sync.Mutex
	peers map[quota.Client]*rate.Limiter // of those that have shown wrong tokens

	logMu    sync.Mutex
	logging  bool       // whether a line was logged less than tokenLogPause ago
	unlogged int        // tokens refused since
	latest   netip.Addr // peer of the latest of them
}

func newGate(c Config) *gate {
	g := &gate{
		token: sha256.Sum256([]byte(c.Token)), refused: c.Process.Tokens, now: c.Now, log: c.Log,
		peers: map[quota.Client]*rate.Limiter{},
	}
	if g.refused == nil {
		g.refused = &TokensRefused{}
	}
	return g
}

// admits reports whether the request's peer shows the right token. Where the wait is
// above zero, the token was not compared: it may be shown again after that time.
func (g *gate) admits(r *http.Request, token string) (wait time.Duration, ok bool) {
	peer := peerOf(r)
	wait, ok = g.compare(quota.ClientOf(peer), token)
	switch {
	case ok:
		return 0, true
	case wait > 0:
		g.refused.Throttled.Add(1)
	default:
		g.refused.Wrong.Add(1)
	}
	g.note(peer)
	return wait, false
}

// compare holds the lock throughout, so that concurrent requests cannot have more
// tokens compared than the peer has tries.
func (g *gate) compare(peer quota.Client, token string) (wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, tries := g.now(), g.peers[peer]
	if tries != nil {
		if left := tries.TokensAt(now); left < 1 {
			return max(time.Duration((1-left)*float64(wrongPace)), 1), false
		}
	}
	given := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(given[:], g.token[:]) == 1 {
		return 0, true
	}
	if tries == nil {
		if len(g.peers) == mostPeers {
			for one := range g.peers { // any
				delete(g.peers, one)
				break
			}
		}
		tries = rate.NewLimiter(rate.Every(wrongPace), WrongTokens)
		g.peers[peer] = tries
	}
	tries.AllowN(now, 1)
	return 0, false
}

// note logs the first of refused tokens, and then once a minute how many there were.
func (g *gate) note(peer netip.Addr) {
	g.logMu.Lock()
	defer g.logMu.Unlock()
	g.unlogged, g.latest = g.unlogged+1, peer
	if !g.logging {
		g.report()
	}
}

// report logs a line, and another after the pause if there is something to say then.
func (g *gate) report() {
	g.logging = g.unlogged > 0
	if !g.logging {
		return
	}
	g.log.Warn("wrong admin tokens were shown", "tokens", g.unlogged, "peer", g.latest.String())
	g.unlogged = 0
	time.AfterFunc(tokenLogPause, func() {
		g.logMu.Lock()
		defer g.logMu.Unlock()
		g.report()
	})
}

// peerOf returns the other end of the socket; the zero Addr where it has no address.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap().WithZone("")
}

// bearerToken returns the token that the Authorization header shows, if it does.
func bearerToken(r *http.Request) (token string, shown bool) {
	scheme, token, shown := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimLeft(token, " "), shown && strings.EqualFold(scheme, "Bearer")
}

// wholeSeconds is a wait as Retry-After has it.
func wholeSeconds(wait time.Duration) string {
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}
