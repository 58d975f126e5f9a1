package web

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// crawlerPatterns is src/patterns.json of isbot 5.2.3 (https://github.com/omrilotan/isbot,
// npm package isbot), which is in the public domain: crawlers/LICENSE. To renew it, copy
// both files of a newer release and run the tests.
//
//go:embed crawlers/patterns.json
var crawlerPatterns []byte

// agentLength is how much of a User-Agent is looked at, in bytes. Browsers inside
// applications send up to 450.
const agentLength = 512

// crawlerList recognises by their User-Agent programs that nobody sits at.
type crawlerList []crawlerPattern

// crawlerPattern matches a text that has its literal and its expression, unless something
// stands around that. Most patterns are a literal and nothing else: to look for that is faster.
type crawlerPattern struct {
	begins    bool           // whether the literal is the text's beginning
	literal   string         // empty is none
	text      *regexp.Regexp // nil where the literal is all
	notAfter  []string
	notBefore *regexp.Regexp
}

func newCrawlerList() (crawlerList, error) {
	var patterns []string
	if err := json.Unmarshal(crawlerPatterns, &patterns); err != nil {
		return nil, fmt.Errorf("list of crawlers: %w", err)
	}
	list := make(crawlerList, len(patterns))
	for i, pattern := range patterns {
		var err error
		if list[i], err = parseCrawlerPattern(pattern); err != nil {
			return nil, fmt.Errorf("list of crawlers: %w", err)
		}
	}
	return list, nil
}

// lookarounds are the conditions before and after a JavaScript expression that Go's regexp
// does not have, because with them the time is not linear in the text.
var lookarounds = regexp.MustCompile(`^(?:\(\?<!([^()]*)\))?(.*?)(?:\(\?!(.*)\))?$`)

func parseCrawlerPattern(pattern string) (p crawlerPattern, err error) {
	parts := lookarounds.FindStringSubmatch(pattern)
	parsed, err := syntax.Parse(parts[2], syntax.Perl)
	if err != nil {
		return p, err
	}
	all := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		all = parsed.Sub
	}
	whole := len(all) == 1
	if all[0].Op == syntax.OpBeginText && len(all) > 1 && all[1].Op == syntax.OpLiteral {
		p.begins, whole = true, len(all) == 2
		all = all[1:2]
	}
	for _, part := range all {
		if part.Op == syntax.OpLiteral && len(part.Rune) > len(p.literal) {
			p.literal = string(part.Rune)
		}
	}
	compile := func(format, expression string) (r *regexp.Regexp) {
		if err == nil && expression != "" {
			r, err = regexp.Compile(fmt.Sprintf(format, expression))
		}
		return r
	}
	if !whole || p.literal == "" || parts[1] != "" || parts[3] != "" {
		p.text = compile("%s", parts[2])
	}
	if parts[1] != "" {
		if strings.ContainsAny(parts[1], `\.+*?()[]{}^$`) {
			return p, fmt.Errorf("%s: what stands before it is no plain text", pattern)
		}
		p.notAfter = strings.Split(parts[1], "|")
	}
	p.notBefore = compile("^(?:%s)", parts[3])
	return p, err
}

func (p crawlerPattern) matches(name string) bool {
	switch {
	case p.begins && !strings.HasPrefix(name, p.literal), !strings.Contains(name, p.literal):
		return false
	case p.text == nil:
		return true
	case p.notAfter == nil && p.notBefore == nil:
		return p.text.MatchString(name)
	}
	return slices.ContainsFunc(p.text.FindAllStringIndex(name, -1), func(at []int) bool {
		return !slices.ContainsFunc(p.notAfter, func(text string) bool { return strings.HasSuffix(name[:at[0]], text) }) &&
			(p.notBefore == nil || !p.notBefore.MatchString(name[at[1]:]))
	})
}

// has reports whether a program calls itself so, in lower case.
func (l crawlerList) has(name string) bool {
	name = strings.ReplaceAll(name, "cubot", " cubot") // a maker of phones, which the list knows behind a blank
	return slices.ContainsFunc(l, func(p crawlerPattern) bool { return p.matches(name) })
}
