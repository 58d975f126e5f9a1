package web

import (
	"strconv"
	"strings"
)

// format is how an answer is written down.
type format int

// The formats from the most to the least preferred where a client does not mind.
const (
	formatJSON format = iota
	formatText
	formatHTML
	formats // how many there are
)

// negotiate picks the format that the Accept header lines prefer (RFC 9110,
// section 12.5.1). Whoever asks for none of ours gets JSON rather than a 406: a
// refusal that cannot be read is worse than one in the wrong format.
func negotiate(accept []string) format {
	var best [formats]preference
	for _, line := range accept {
		for element := range strings.SplitSeq(line, ",") {
			mediaRange, quality, ok := parseRange(element)
			if !ok {
				continue
			}
			for f := range formats {
				p := preference{specificity: f.matches(mediaRange), quality: quality}
				if p.specificity > 0 && p.over(best[f]) {
					best[f] = p
				}
			}
		}
	}
	chosen := formatJSON
	for f := range formats {
		if best[f].quality > best[chosen].quality {
			chosen = f
		}
	}
	return chosen
}

// preference is what a header says of one format: the most specific range that
// matches it decides.
type preference struct {
	specificity int // 0 no match, 1 */*, 2 type/*, 3 type/subtype
	quality     float64
}

func (p preference) over(q preference) bool {
	if p.specificity != q.specificity {
		return p.specificity > q.specificity
	}
	return p.quality > q.quality
}

func (f format) matches(mediaRange string) int {
	switch mediaRange {
	case "*/*":
		return 1
	case "application/*":
		if f == formatJSON {
			return 2
		}
	case "text/*":
		if f == formatText || f == formatHTML {
			return 2
		}
	case "application/json", "application/problem+json":
		if f == formatJSON {
			return 3
		}
	case "text/plain":
		if f == formatText {
			return 3
		}
	case "text/html":
		if f == formatHTML {
			return 3
		}
	}
	return 0
}

// parseRange reads one element of an Accept header. Parameters other than the
// quality are not told apart.
func parseRange(element string) (mediaRange string, quality float64, ok bool) {
	mediaRange, params, _ := strings.Cut(element, ";")
	quality = 1
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // written so that it catches NaN too
			return "", 0, false
		}
		quality = q
	}
	return strings.ToLower(strings.TrimSpace(mediaRange)), quality, true
}
