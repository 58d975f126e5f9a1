package blocklist_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"snip/shortener"
	"snip/shortener/blocklist"
)

func TestParseReadsEveryFormat(t *testing.T) {
	t.Parallel()
	const plain = "plain.example\n" // what every text here lists, so that none is empty
	rows := []struct {
		name, text string
		blocks     string // hosts, apart by blanks
		passes     string
		skipped    int
	}{
		{"hosts", "0.0.0.0 a.example b.example\n127.0.0.1\tc.example\n::1 d.example\n:: e.example\n127.0.0.53 f.example", "a.example b.example c.example d.example e.example f.example", "0.0.0.0 127.0.0.1 ::1 example", 0},
		{"head of a hosts file", "127.0.0.1 localhost localhost.localdomain local\n255.255.255.255 broadcasthost\n::1 LocalHost ip6-localhost ip6-loopback\nfe80::1%lo0 localhost\n" +
			"ff00::0 ip6-localnet\nff00::0 ip6-mcastprefix\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\nff02::3 ip6-allhosts\n0.0.0.0 0.0.0.0\n127.0.0.1 localhost4 localhost4.localdomain4", "", "localhost localhost.localdomain 0.0.0.0 broadcasthost", 7},
		{"hosts with addresses of their own", "192.0.2.7 nas.example\n216.239.38.120 search.example", "", "nas.example search.example", 2},
		{"addresses", "192.0.2.7\n0.0.0.0 192.0.2.8\n2001:DB8:0::1\n[2001:db8::2]\n||192.0.2.9^\n||[2001:db8::3]^", "192.0.2.7 192.0.2.8 192.0.2.9 2001:db8::1 2001:db8::2 2001:db8::3", "192.0.2.6 2001:db8:: 2001:db8::1:1", 0},
		{"an IPv4 address in IPv6", "::ffff:192.0.2.7\n64:ff9b::c000:208", "192.0.2.7 192.0.2.8", "192.0.2.9", 0},
		{"plain, with wildcards and dots", "*.a.example\n.b.example\nc.example.", "a.example x.a.example b.example x.b.example c.example", "xa.example", 0},
		{"AdBlock", "||a.example^\n||b.example^$document\n||c.example^$all\n||d.example^$doc,important", "a.example x.a.example b.example c.example d.example", "", 0},
		{"AdBlock that blocks less", "||a.example^$third-party\n||a.example^$script,document\n||a.example^$document,domain=b.example\n||a.example^$\n||a.example^document\n||a.example^|\n||a.example\n" +
			"||a.example/ads^\n||a.*.example^\n||*.a.example^\n||a.example:8080^\n||a.^\n|https://a.example^\n*.a.example^\n-banner$image\n/a.example/\n/^a\\.example$/\nads*.a.example\na.example^", "", "a.example x.a.example", 19},
		{"AdBlock exceptions and cosmetics", "@@||a.example^\n@@a.example\n##.a.example\na.example##.ad\na.example#@#.ad\na.example#?#.ad\na.example,b.example#$#body {}\na.example#@$?#x", "", "a.example b.example", 7},
		{"comments of AdBlock", "[Adblock Plus 2.0]\n! ||a.example^\n!a.example\n! <b>a.example</b>", "", "a.example", 4},
		{"patterns in a list that is AdBlock's", "[uBlock Origin]\n-ad-banner.\n/ads.js\nads\nexample.org/ads\na.example", "a.example", "example.org", 5},
		{"patterns under other headers", "[AdGuard]\nads", "", "", 2},
		{"comments", "# a.example\n  # a.example\nb.example # a.example\nc.example#a.example\nd.example\t## a.example\n0.0.0.0 e.example #a.example\n||f.example^ # a.example\n#", "b.example c.example d.example e.example f.example", "a.example", 0},
		{"CRLF, blanks and blank lines", "\r\n \t\r\n  a.example  \r\n0.0.0.0\t\tb.example \r\n\r\n", "a.example b.example", "", 0},
		{"no newline at the end", "a.example\nb.example", "a.example b.example", "", 0},
		{"upper case", "A.Example\n||B.EXAMPLE^\n0.0.0.0 C.example", "a.example b.example c.example", "", 0},
		{"international", "münchen.example\n||straße.example^\n0.0.0.0 ＡＢＣ。example\nxn--bcher-kva.example", "xn--mnchen-3ya.example www.xn--mnchen-3ya.example xn--strae-oqa.example abc.example xn--bcher-kva.example", "münchen.example", 0},
		{"names of services", "_dmarc.a.example\nb-.example\n-c.example\n1.2.3.4.example", "_dmarc.a.example b-.example -c.example 1.2.3.4.example", "a.example 1.2.3.4", 0},
		{"twice", "a.example\n0.0.0.0 a.example", "a.example", "", 0},
	}
	for _, row := range rows {
		for _, mark := range []string{"", "\ufeff"} {
			t.Run(row.name+mark, func(t *testing.T) {
				t.Parallel()
				list, report, err := blocklist.Parse(strings.NewReader(mark + row.text + "\n" + plain))
				if err != nil {
					t.Fatal(err)
				}
				if report.Bad != 0 || report.Skipped != row.skipped {
					t.Errorf("%d bad (%v) and %d skipped, want 0 and %d", report.Bad, report.FirstBad, report.Skipped, row.skipped)
				}
				for _, host := range strings.Fields(row.blocks + " plain.example") {
					if !list.Blocks(host) {
						t.Errorf("%s passes", host)
					}
				}
				for _, host := range strings.Fields(row.passes + " other.example example") {
					if list.Blocks(host) {
						t.Errorf("%s is blocked", host)
					}
				}
			})
		}
	}
}

// What is listed in one spelling is found in every spelling that browsers read.
func TestParseAgreesWithDestinations(t *testing.T) {
	t.Parallel()
	list, report, err := blocklist.Parse(strings.NewReader("192.0.2.7\nmünchen.example\n2001:db8::1\n"))
	if err != nil || report.Names != 3 {
		t.Fatal(report, err)
	}
	for _, destination := range []string{
		"http://192.0.2.7/x", "http://0xc0.0.2.7/", "http://3221225991/", "http://0300.0.0x207./", "http://[::ffff:c000:207]/",
		"https://MÜNCHEN.example", "https://www.xn--mnchen-3ya.example.:8443/?q", "https://[2001:DB8:0:0::1]:80/",
	} {
		if host := shortener.HostOf(destination); !list.Blocks(host) {
			t.Errorf("%s, whose host is read as %q, passes", destination, host)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := hosts(1000)
	rows := []struct {
		name, text, reason string
	}{
		{"empty", "", "names nothing to block"},
		{"blank", "\n \n\r\n", "names nothing to block"},
		{"comments only", "# Title: a list\n! and another\n", "names nothing to block"},
		{"nothing but rules for less", "[Adblock Plus 2.0]\n||a.example^$third-party\n##.ad\n", "names nothing to block"},
		{"the head of a hosts file only", "127.0.0.1 localhost\n0.0.0.0 0.0.0.0\n", "names nothing to block"},
		{"a top-level domain", good + "com\n", `line 1001: "com" has no dot`},
		{"a top-level domain in hosts format", good + "0.0.0.0 a.example com\n", `line 1001: "com" has no dot`},
		{"a top-level domain in AdBlock", "[Adblock Plus]\na.example\n||com^\n", `line 3: "com" has no dot`},
		{"a top-level domain with a wildcard", good + "*.com\n", `line 1001: "*.com" has no dot`},
		{"a top-level domain with dots", good + ".com.\n", `line 1001: ".com." has no dot`},
		{"an international top-level domain", good + "рф\n", "has no dot"},
		{"the machine's own hosts file", "127.0.0.1 localhost\n127.0.1.1 laptop\n", `line 2: "laptop" has no dot`},
		{"a web page", "\n<!DOCTYPE html>\n<title>404</title>\n", "line 2 begins with <"},
		{"a web page at the end", good + "  <html>\n", "line 1001 begins with <"},
		{"an answer in JSON", `{"error": "not.found"}` + "\n", "1 of 1 entries"},
		{"an answer in words", "404: Not Found\n", "1 of 1 entries"},
		{"an answer in a word", "Forbidden\n", "has no dot"},
		{"addresses of pages", "https://a.example/x\nhttps://b.example/y\n", "2 of 2 entries were not understood; line 1"},
		{"dnsmasq", "address=/a.example/0.0.0.0\n", "1 of 1 entries"},
		{"a table", "a.example,malware\n", "1 of 1 entries"},
		{"binary", good + "\x00\n", "line 1001 holds control characters"},
		{"compressed", "\x1f\x8b\x08\x00a.example\n", "line 1 holds control characters"},
		{"UTF-16", "\xff\xfea\x00.\x00e\x00", "line 1 holds control characters"},
		{"another encoding", "m\xfcnchen.example\n", "1 of 1 entries"},
		{"lines that end in CR alone", "a.example\rb.example\r", "line 1 holds control characters"},
		{"a long line", good + "# " + strings.Repeat("x", 1<<16) + "\n", "line 1001 has more than"},
		{"a typing error in a short list", "a.example\nb .example\nc.example\n", `1 of 3 entries were not understood; line 2: "b .example"`},
		{"too many slips", good + strings.Repeat("b .example\n", 11), "11 of 1011 entries were not understood; line 1001"},
		{"short numbers", "1.5\n", "no IPv4 address in full"},
		{"a network", "192.0.2.0/24\n", "1 of 1 entries"},
		{"an address with a port", "192.0.2.1:80\n", "1 of 1 entries"},
		{"punycode that is none", "xn--zz.example\n", `"xn--zz.example" is no domain and no IP address`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			list, report, err := blocklist.Parse(strings.NewReader(row.text))
			if list != nil || report != (blocklist.Report{}) || err == nil || !strings.Contains(err.Error(), row.reason) {
				t.Errorf("got a list: %t, %+v and %v; want an error that says %q", list != nil, report, err, row.reason)
			}
		})
	}
}

func TestParseLeavesOutASlip(t *testing.T) {
	t.Parallel()
	text := hosts(500) + "0.0.0.0 before.example slip!.example behind.example\n" + hosts(1000) + "a\x7f.example " + strings.Repeat("y", 1000) + "\n"
	list, report, err := blocklist.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if report.Bad != 2 || report.Names != 1002 || !list.Blocks("before.example") || !list.Blocks("behind.example") || list.Blocks("slip!.example") {
		t.Errorf("got %+v", report)
	}
	wrong := report.FirstBad
	if wrong.Line != 501 || wrong.Text != "slip!.example" || wrong.Error() != `line 501: "slip!.example" is no domain and no IP address` {
		t.Errorf("got %+v: %v", wrong, wrong)
	}
}

func TestParsePassesReadErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	text := io.MultiReader(strings.NewReader(hosts(1000)), iotest.ErrReader(broken))
	if list, _, err := blocklist.Parse(text); list != nil || !errors.Is(err, broken) {
		t.Errorf("got %v and %v", list, err)
	}
}

// hosts returns a list of n names in hosts format, the same each time.
func hosts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "0.0.0.0 %s\n", listed(i))
	}
	return b.String()
}

// listed is the name number i of hosts: most have two or three labels, as those of
// real lists have.
func listed(i int) string {
	return [...]string{"", "www.", "ads.cdn.", ""}[i%4] + fmt.Sprintf("tracker-%d.%s", i*2654435761%1e9, [...]string{"com", "net", "co.uk"}[i%3])
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0.0.0.0 a.example b.example # c", "||a.example^$all", "*.a.example\r\n.b.example", "\ufeffmünchen.example", "[2001:db8::1]",
		"::1 a.example", "192.0.2.1", "@@||a.example^", "a.example##.ad", "[Adblock Plus]\n! x\n-ads-", "<html>", "com", "xn--bcher-kva.example", "\x00", "||[::1]^",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, report, err := blocklist.Parse(strings.NewReader(text))
		if (list == nil) != (err != nil) || err == nil && report.Names == 0 || (report.Bad > 0) != (report.FirstBad != nil) {
			t.Fatalf("got a list: %t, %+v and %v", list != nil, report, err)
		}
		entries := strings.Fields(text)
		for _, entry := range entries[:min(len(entries), 10)] {
			name, err := blocklist.Name(entry)
			if err != nil {
				continue
			}
			if again, err := blocklist.Name(name); err != nil || again != name {
				t.Errorf("%q is %q, and that is %q: %v", entry, name, again, err)
			}
			if strings.HasPrefix(name, "localhost") || name == "0.0.0.0" {
				continue
			}
			rule := "||" + name + "^"
			if strings.Contains(name, ":") {
				rule = "||[" + name + "]^"
			}
			for _, line := range []string{name, "0.0.0.0 " + name, rule} {
				list, report, err := blocklist.Parse(strings.NewReader(line))
				if err != nil || report != (blocklist.Report{Names: 1}) || !list.Blocks(name) {
					t.Errorf("%q: %+v, %v", line, report, err)
				}
			}
		}
	})
}
