package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/web"
)

// config is the settings, read and found sound.
type config struct {
	listen     string
	admin      string // empty is no admin listener
	adminToken string // empty is that of the file
	webhook    *url.URL
	adminURL   string // the origin of the operator's page; empty where it has no name
	keysOnly   bool
	blocklists []string // paths
	shorteners bool     // whether links may lead to other shorteners
	words      []string // slugs that nobody may choose
	store      location
	publicURL  *url.URL // without a trailing slash
	contact    string
	proxies    []netip.Prefix
	nat64      quota.NAT64
	header     string   // in canonical form
	origins    []string // of the sites whose pages may use the API, as browsers send them
	throttle   quota.ThrottleConfig
	policy     quota.Policy
	redirect   int
	keptDays   int64 // for which links are kept after their expiry; 0 is for ever

	destinations shortener.Destinations
	checks       *shortener.Checks // nil where destinations are not checked

	warnings []string // settings that are allowed and probably not meant
}

// The bounds of the throttle: those of [quota.ThrottleConfig], which would be
// reported one at a time and too late, and a burst beyond which it brakes nothing.
const (
	maxPace    = 24 * time.Hour
	maxBurst   = 1_000_000
	maxClients = 1 << 24
)

// readConfig reads every setting. Its error is a [*settingsError] that holds
// each problem with the flag, the value, and what would be right.
func readConfig(given settings) (config, error) {
	r := reader{given: given}
	c := config{
		listen:     read(&r, "listen", parseListen),
		admin:      read(&r, "admin-listen", parseAdminListen),
		adminToken: readSecret(&r, "admin-token", parseAdminToken),
		webhook:    readSecret(&r, "alert-webhook", parseWebhook),
		adminURL:   read(&r, "admin-url", parseAdminURL),
		keysOnly:   read(&r, "creation", parseCreation),
		blocklists: read(&r, "blocklists", parsePaths),
		shorteners: read(&r, "allow-shorteners", parseSwitch),
		words:      read(&r, "reserved-slugs", parseSlugs),
		store:      readStore(&r),
		publicURL:  read(&r, "public-url", parsePublicURL),
		contact:    read(&r, "contact", parseContact),
		proxies:    read(&r, "trusted-proxies", parsePrefixes),
		nat64:      read(&r, "nat64-prefixes", parseNAT64),
		header:     read(&r, "client-ip-header", parseHeaderName),
		origins:    read(&r, "cors-origins", parseOrigins),
		redirect:   read(&r, "redirect-status", parseRedirectStatus),
		keptDays:   read(&r, "delete-expired-after", whole(0, mostDays)),
		throttle: quota.ThrottleConfig{
			Every:   read(&r, "throttle-every", parsePace),
			Burst:   int(read(&r, "throttle-burst", whole(1, maxBurst))),
			Clients: int(read(&r, "throttle-clients", whole(1, maxClients))),
		},
	}
	private := read(&r, "allow-private-destinations", parseSwitch)
	if c.publicURL != nil {
		if err := web.CheckPublicURL(c.publicURL); err != nil {
			r.problems = append(r.problems, fmt.Errorf("--public-url %q: %w", c.publicURL, err))
		}
		var err error
		if c.destinations, err = shortener.NewDestinations(c.publicURL, private); err != nil {
			if reason, ok := errors.AsType[shortener.Reason](err); ok {
				err = web.InEnglish(reason)
			}
			r.problems = append(r.problems, fmt.Errorf("--public-url %q: it %w", c.publicURL, err))
		}
	}
	if err := needAdminToken(&r, c.admin, c.store); err != nil {
		r.problems = append(r.problems, err)
	}
	var dry []string
	sound := len(r.problems)
	c.policy = quota.Policy{
		Client:    read(&r, "quota-client", whole(0, math.MaxInt64)),
		Network:   read(&r, "quota-network", whole(0, math.MaxInt64)),
		Service:   read(&r, "quota-service", whole(0, math.MaxInt64)),
		Newcomers: read(&r, "quota-newcomers", whole(0, math.MaxInt64)),
	}
	for level, flag := range map[quota.Level]string{
		quota.LevelClient: "quota-client-dry-run", quota.LevelNetwork: "quota-network-dry-run", quota.LevelService: "quota-service-dry-run",
	} {
		if read(&r, flag, parseSwitch) {
			if c.policy.DryRun == nil {
				c.policy.DryRun = map[quota.Level]bool{}
			}
			c.policy.DryRun[level] = true
			dry = append(dry, "--"+flag+" is set: that level refuses nothing")
		}
	}
	// A chain of numbers that were not read would be reported wrong as well.
	if len(r.problems) == sound {
		for _, err := range each(c.policy.Validate()) {
			r.problems = append(r.problems, fmt.Errorf("--quota-*: %w", err))
		}
	}
	c.checks = readChecks(&r, c.keysOnly)
	if len(r.problems) > 0 {
		return config{}, &settingsError{r.problems}
	}
	slices.Sort(dry)
	c.warnings = append(warnings(c, given), dry...)
	return c, nil
}

func warnings(c config, given settings) []string {
	var w []string
	if len(c.proxies) == 0 && given["client-ip-header"].given {
		w = append(w, "--client-ip-header has no effect without --trusted-proxies")
	}
	if !given["public-url"].given && reachable(c.listen) {
		w = append(w, "--public-url is the default, so short links lead to localhost, and browsers "+
			"can make links only on this machine; set it to what visitors type")
	}
	w = append(w, checkWarnings(c, given)...)
	if c.admin != "" && reachable(c.admin) {
		w = append(w, "--admin-listen may be reached by other machines, and what is said there is not encrypted; listen on 127.0.0.1, or see that nobody else gets there")
	}
	return w
}

// reader reads settings and collects what is wrong with them.
type reader struct {
	given    settings
	problems []error
}

// isSet reports whether the setting has a value.
func (r *reader) isSet(flag string) bool { return r.given[flag].text != "" }

// name returns what a problem with the setting begins with.
func (r *reader) name(flag string) string {
	if variable := r.given[flag].variable; variable != "" {
		return "--" + flag + " (from " + variable + ")"
	}
	return "--" + flag
}

// read returns the setting as parse understands it, or the zero value and a
// problem more.
func read[T any](r *reader, flag string, parse func(string) (T, error)) T {
	s := r.given[flag]
	value, err := parse(s.text)
	if err != nil {
		text := withoutPassword(s.text)
		switch flag {
		case "store":
			text = shownStore(s.text)
		case "admin-token", "alert-webhook", "reputation-key": // secrets
			text = "..."
		}
		r.problems = append(r.problems, fmt.Errorf("%s %q: %w", r.name(flag), text, err))
	}
	return value
}

// withoutPassword returns text as it may be shown: what stands before the host
// of a URL stays out of logs, even when the URL cannot be parsed.
func withoutPassword(text string) string {
	scheme := strings.Index(text, "://")
	host := strings.LastIndex(text, "@")
	if scheme < 0 || host < scheme {
		return text
	}
	return text[:scheme+len("://")] + "..." + text[host:]
}

// each returns the errors that were joined into err.
func each(err error) []error {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}
