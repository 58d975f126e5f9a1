package shortener

import (
	"errors"
	"testing"
	"time"
)

var expiryNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{ // an empty want is a refusal
		{"2026-11-29T12:00:00.000001Z", "2026-11-29T12:00:00.000001Z"},
		{"2026-11-29T12:00:00.0000019Z", "2026-11-29T12:00:00.000001Z"},
		{"2026-11-29T12:00:00.0000009Z", ""}, // what is kept of it has come
		{"2026-11-29T12:00:00Z", ""},
		{"2026-11-29T23:00:00+12:00", ""},
		{"2026-11-30T00:30:00+12:00", "2026-11-29T12:30:00Z"},
		{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
		{"9999-12-31T23:59:59-00:01", ""}, // the year 10000 in UTC
		{"2030-01-31T23:59:60Z", ""},
		{"2030-02-29T00:00:00Z", ""},
		{"2030-01-31T01:00:00", ""},
		{"2030-01-31 01:00:00Z", ""},
		{"2030-01-31", ""},
		{"1900000000", ""},
		{" 2030-01-31T01:00:00Z", ""},
	} {
		got, err := parseExpiry(row.text, expiryNow)
		switch {
		case row.want == "":
			if !errors.Is(err, ErrInvalidExpiry) || !got.IsZero() {
				t.Errorf("%q: %v, %v; want it refused", row.text, got, err)
			}
		case err != nil || got.Format(time.RFC3339Nano) != row.want:
			t.Errorf("%q: %v, %v; want %s", row.text, got, err, row.want)
		}
	}
}

// Whatever is accepted lies ahead, survives a store's microseconds, and can be
// shown in an answer.
func FuzzParseExpiry(f *testing.F) {
	for _, seed := range []string{
		"", "2030-01-31T18:00:00+09:00", "2026-11-29T12:00:00.0000009Z", "9999-12-31T23:59:59-12:00", "2030-01-31T1:00:00,5Z",
		"0000-01-01T00:00:00Z", "2030-01-31T01:00:00.999999999999999999Z", "2030-13-32T25:61:61+99:99",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseExpiry(text, expiryNow)
		if err != nil {
			if !errors.Is(err, ErrInvalidExpiry) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if text == "" {
			return
		}
		if !got.After(expiryNow) || !got.Equal(time.UnixMicro(got.UnixMicro())) {
			t.Errorf("%q was read as %v", text, got)
		}
		shown, err := got.MarshalText()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if again, err := parseExpiry(string(shown), expiryNow); err != nil || !again.Equal(got) {
			t.Errorf("%q was read as %v, and that as %v: %v", text, got, again, err)
		}
	})
}
