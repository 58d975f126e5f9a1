package blocklist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// maxSize bounds a list, in bytes. It has room for some ten million names.
const maxSize = 256 << 20

// slips is how many entries that were understood make up for one that was not. A
// short list, which its operator typed, must be right; a long one comes from
// elsewhere, and is of more use with a slip than not at all.
const slips = 100

// Report is what a list was found to hold.
type Report struct {
	Names    int        // different domains and addresses
	Skipped  int        // AdBlock lines and rules that name no whole domain, and hosts with an address of their own
	Bad      int        // entries that were not understood and are left out
	FirstBad *LineError // the first of them, else nil
}

// LineError says what is wrong with an entry of a list.
type LineError struct {
	Line int
	Text string
	Err  error
}

// Error cuts the entry, which comes from elsewhere, to what fits into a log.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %.60q %v", e.Line, e.Text, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// Parse reads a list: lines of a hosts file, plain domains and addresses, and
// AdBlock's ||domain^, in any mixture. An entry that it does not understand is
// left out and counted. It is an error if these are more than one in a hundred,
// if a top-level domain is listed, and if the text is empty, binary, a web page
// or larger than 256 MiB.
func Parse(r io.Reader) (*List, Report, error) { return parse(r, maxSize) }

func parse(r io.Reader, most int64) (*List, Report, error) {
	limited := &io.LimitedReader{R: r, N: most + 1}
	lines := bufio.NewScanner(limited)
	var p parser
	for lines.Scan() {
		if err := p.read(lines.Text()); err != nil {
			return nil, Report{}, err
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, Report{}, fmt.Errorf("line %d has more than %d bytes", p.line+1, bufio.MaxScanTokenSize)
	case err != nil:
		return nil, Report{}, err
	case limited.N <= 0:
		return nil, Report{}, fmt.Errorf("has more than %d bytes", most)
	case p.report.Bad*slips > len(p.hashes):
		return nil, Report{}, fmt.Errorf("%d of %d entries were not understood; %w",
			p.report.Bad, p.report.Bad+len(p.hashes), p.report.FirstBad)
	case len(p.hashes) == 0:
		return nil, Report{}, errors.New("names nothing to block; if that is meant, let it name nothing.invalid")
	}
	t, names := newTable(p.hashes)
	p.report.Names = names
	return &List{tables: []table{t}, deepest: p.deepest}, p.report, nil
}

type parser struct {
	line    int
	adblock bool // the list says of itself that it holds such rules
	report  Report
	hashes  []uint64
	deepest int
}

// read takes in a line. Its error means that the list cannot be trusted.
func (p *parser) read(line string) error {
	p.line++
	if p.line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.TrimSpace(line)
	switch {
	case strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' }):
		return fmt.Errorf("line %d holds control characters, as no text does", p.line)
	case strings.HasPrefix(line, "<"):
		return fmt.Errorf("line %d begins with <, as web pages do", p.line)
	case strings.HasPrefix(line, "!"):
		p.report.Skipped++
		return nil
	case isHeader(line):
		p.adblock = true
		p.report.Skipped++
		return nil
	}
	line, cosmetic := cutComment(line)
	switch {
	case line == "":
		return nil
	case cosmetic, strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "/"):
		p.report.Skipped++
		return nil
	case strings.ContainsAny(line, "|^$"):
		return p.readRule(line)
	}
	return p.readNames(line)
}

// isHeader reports whether a line is the first of an AdBlock list, such as
// [Adblock Plus 2.0]. An IPv6 address stands in brackets too.
func isHeader(line string) bool {
	lower := strings.ToLower(line[:min(len(line), len("[adblock"))])
	return lower == "[adblock" || lower == "[adguard" || strings.HasPrefix(lower, "[ublock")
}

// cutComment cuts off what follows a #, unless that hides parts of pages, as in
// example.org##.banner and example.org#@#.banner.
func cutComment(line string) (rest string, cosmetic bool) {
	before, after, _ := strings.Cut(line, "#")
	rest = strings.TrimRight(before, " \t")
	joined := rest != "" && rest == before
	return rest, joined && strings.HasPrefix(strings.TrimLeft(after, "@?$%"), "#")
}

// readRule takes in an AdBlock rule that blocks visits to a whole domain. What
// blocks less is never read as if it did.
func (p *parser) readRule(line string) error {
	rest, whole := strings.CutPrefix(line, "||")
	name, options, ended := strings.Cut(rest, "^")
	ported := strings.Contains(name, ":") && !strings.HasPrefix(name, "[")
	if !whole || !ended || ported || strings.ContainsAny(name, "/*") || strings.HasSuffix(name, ".") || !blocksVisits(options) {
		p.report.Skipped++
		return nil
	}
	return p.judge(name, p.add(name))
}

// blocksVisits reports whether a rule with these options holds for a page that is
// visited, and for every one. Others, such as $third-party, $script or $domain=,
// leave the site itself open.
func blocksVisits(options string) bool {
	if options == "" {
		return true
	}
	list, ok := strings.CutPrefix(options, "$")
	for option := range strings.SplitSeq(list, ",") {
		switch option {
		case "all", "doc", "document", "important":
		default:
			return false
		}
	}
	return ok
}

// hostsOwn are the names that hosts files begin with; they are no one's to block.
var hostsOwn = map[string]bool{
	"0.0.0.0": true, "localhost": true, "localhost.localdomain": true, "local": true, "broadcasthost": true,
	"localhost4": true, "localhost4.localdomain4": true, "localhost6": true, "localhost6.localdomain6": true,
	"ip6-localhost": true, "ip6-loopback": true, "ip6-localnet": true, "ip6-mcastprefix": true,
	"ip6-allnodes": true, "ip6-allrouters": true, "ip6-allhosts": true,
}

// readNames takes in a line of a hosts file, or a single name.
func (p *parser) readNames(line string) error {
	names := strings.Fields(line)
	if len(names) > 1 {
		sink, err := netip.ParseAddr(names[0])
		switch {
		case err != nil:
			names = []string{line} // which is no name, and is reported as a whole
		case !sink.IsUnspecified() && !sink.IsLoopback():
			p.report.Skipped++ // it leads somewhere else and blocks nothing
			return nil
		default:
			names = names[1:]
		}
	}
	for _, name := range names {
		if hostsOwn[strings.ToLower(name)] {
			continue
		}
		err := p.add(name)
		// A * inside, and in an AdBlock list any text, is a pattern for addresses.
		if err != nil && (p.adblock || strings.Contains(name, "*") && !errors.Is(err, errBare)) {
			p.report.Skipped++
			continue
		}
		if err := p.judge(name, err); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) add(text string) error {
	name, err := Name(text)
	if err != nil {
		return err
	}
	p.hashes = append(p.hashes, hash(name))
	p.deepest = max(p.deepest, strings.Count(name, ".")+1)
	return nil
}

// judge counts an entry that is left out, and returns the error of one that
// spoils the list.
func (p *parser) judge(text string, err error) error {
	if err == nil {
		return nil
	}
	wrong := &LineError{Line: p.line, Text: text, Err: err}
	if errors.Is(err, errBare) {
		return wrong
	}
	p.report.Bad++
	if p.report.FirstBad == nil {
		p.report.FirstBad = wrong
	}
	return nil
}
