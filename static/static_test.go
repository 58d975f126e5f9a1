package static_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"snip/static"
)

// TestContrast holds every text to 4.5:1 against what is behind it, and what
// bounds a field to 3:1 (WCAG 2.2, success criteria 1.4.3 and 1.4.11).
func TestContrast(t *testing.T) {
	t.Parallel()
	css, err := static.Files.ReadFile("snip.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "prefers-color-scheme: dark")
	if !ok {
		t.Fatal("there is no dark scheme")
	}
	for scheme, colours := range map[string]map[string]float64{"light": luminances(t, light), "dark": luminances(t, dark)} {
		for _, row := range []struct {
			front, behind string
			atLeast       float64
		}{
			{"ink", "page", 4.5},
			{"ink", "field", 4.5},
			{"ink", "made", 4.5},
			{"quiet", "page", 4.5},
			{"quiet", "field", 4.5},
			{"accent", "page", 4.5},
			{"accent", "made", 4.5},
			{"accent-hover", "page", 4.5},
			{"accent-hover", "made", 4.5},
			{"on-accent", "accent", 4.5},
			{"on-accent", "accent-hover", 4.5},
			{"alert-ink", "alert", 4.5},
			{"alert-ink", "page", 4.5},
			{"quiet", "made", 4.5},
			{"edge", "page", 3},
			{"edge", "field", 3},
		} {
			a, okA := colours[row.front]
			b, okB := colours[row.behind]
			if !okA || !okB {
				t.Errorf("%s: --%s or --%s is not set", scheme, row.front, row.behind)
				continue
			}
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < row.atLeast {
				t.Errorf("%s: --%s on --%s is %.2f:1, want %g:1", scheme, row.front, row.behind, got, row.atLeast)
			}
		}
	}
}

var colour = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3,6});`)

// luminances returns the relative luminance of each custom property, as WCAG 2.2
// defines it.
func luminances(t *testing.T, css string) map[string]float64 {
	t.Helper()
	found := make(map[string]float64)
	for _, match := range colour.FindAllStringSubmatch(css, -1) {
		digits := match[2]
		if len(digits) == 3 {
			digits = strings.Join([]string{digits[:1], digits[:1], digits[1:2], digits[1:2], digits[2:], digits[2:]}, "")
		}
		rgb, err := strconv.ParseUint(digits, 16, 24)
		if err != nil {
			t.Fatal(err)
		}
		channel := func(shift int) float64 {
			c := float64(rgb>>shift&0xff) / 255
			if c <= 0.04045 {
				return c / 12.92
			}
			return math.Pow((c+0.055)/1.055, 2.4)
		}
		found[match[1]] = 0.2126*channel(16) + 0.7152*channel(8) + 0.0722*channel(0)
	}
	return found
}
