package shortener

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestSlugRules(t *testing.T) {
	t.Parallel()
	rules := newSlugRules([]string{"api", "HealthZ"})
	rows := []struct{ name, text, reason string }{ // no reason: accepted as it is
		{name: "none", text: ""},
		{name: "shortest", text: "abc"},
		{name: "longest", text: strings.Repeat("x", MaxSlug)},
		{name: "case kept", text: "MyEvent"},
		{name: "hyphens inside", text: "1-3_link"},
		{name: "digits", text: "2026"},
		{name: "reserved as a part", text: "apis"},
		{"too short", "ab", "at least 3 characters, and has 2"},
		{"too long", strings.Repeat("x", MaxSlug+1), "at most 64 characters, and has 65"},
		{"slash", "example/test-a", `must not contain "/";`},
		{"each once, in order", "a b.a b!", `must not contain " " "." "!";`},
		{"characters before length", strings.Repeat("ä", MaxSlug), `must not contain "ä";`},
		{"short and strange", "ä", `must not contain "ä";`},
		{"control character", "ab\ncd", `must not contain "\n";`},
		{"direction mark", "ab\u202ecd", `must not contain "\u202e";`},
		{"invalid UTF-8", "ab\xffcd", `must not contain "\xff";`},
		{"quote", `ab"cd`, `must not contain "\"";`},
		{"look-alike", "аbc", `must not contain "а";`},
		{"many", "abc!$%&()*+,", `must not contain "!" "$" "%" "&" "(" ")" "*" "+" and others;`},
		{"hyphen first", "-abc", "begin and end"},
		{"underscore first", "_abc", "begin and end"},
		{"hyphen last", "abc-", "begin and end"},
		{"underscore last", "abc_", "begin and end"},
		{"reserved", "api", `"api", which is reserved`},
		{"reserved in another case", "Api", `"Api", which is reserved`},
		{"reserved in lower case", "healthz", `"healthz", which is reserved`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			slug, err := rules.parse(row.text)
			if row.reason == "" {
				if err != nil || string(slug) != row.text {
					t.Errorf("got %q, %v", slug, err)
				}
				return
			}
			var invalid *InvalidError
			if !errors.As(err, &invalid) || slug != "" {
				t.Fatalf("got %q, %v, want an InvalidError", slug, err)
			}
			if invalid.Field != "slug" || !errors.Is(err, ErrInvalidSlug) || !strings.Contains(invalid.Reason, row.reason) {
				t.Errorf("got %v, want %q", err, row.reason)
			}
		})
	}
}

func TestSlugAlphabet(t *testing.T) {
	t.Parallel()
	if strings.ContainsAny(SlugAlphabet, "0O1Il-_") {
		t.Error("the alphabet has look-alikes or hyphens")
	}
	for i, c := range SlugAlphabet {
		if strings.IndexRune(SlugAlphabet, c) != i {
			t.Errorf("%q is in it twice", c)
		}
	}
	if !slices.IsSorted([]byte(SlugAlphabet)) {
		t.Error("it is not in the order of its bytes")
	}
}
