package shortener

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSlugRules(t *testing.T) {
	t.Parallel()
	rules := newSlugRules([]string{"api", "HealthZ"}, []string{"Jobs", "big-sale"})
	rows := []struct{ name, text, reason string }{ // no reason: accepted as it is
		{name: "none", text: ""},
		{name: "shortest", text: "abc"},
		{name: "longest", text: strings.Repeat("x", MaxSlug)},
		{name: "case kept", text: "MyEvent"},
		{name: "hyphens inside", text: "1-3_link"},
		{name: "digits", text: "2026"},
		{name: "reserved as a part", text: "apis"},
		{"too short", "ab", "has too few characters, Characters 2, Min 3"},
		{"too long", strings.Repeat("x", MaxSlug+1), "has too many characters, Characters 65, Max 64"},
		{"slash", "example/test-a", `must not contain, Characters "/"`},
		{"each once, in order", "a b.a b!", `must not contain, Characters " " "." "!"`},
		{"characters before length", strings.Repeat("ä", MaxSlug), `must not contain, Characters "ä"`},
		{"short and strange", "ä", `must not contain, Characters "ä"`},
		{"control character", "ab\ncd", `must not contain, Characters "\n"`},
		{"direction mark", "ab\u202ecd", `must not contain, Characters "\u202e"`},
		{"invalid UTF-8", "ab\xffcd", `must not contain, Characters "\xff"`},
		{"quote", `ab"cd`, `must not contain, Characters "\""`},
		{"look-alike", "аbc", `must not contain, Characters "а"`},
		{"many", "abc!$%&()*+,", `must not contain these and others, Characters "!" "$" "%" "&" "(" ")" "*" "+"`},
		{"hyphen first", "-abc", "must begin and end with a letter or a digit"},
		{"underscore first", "_abc", "must begin and end with a letter or a digit"},
		{"hyphen last", "abc-", "must begin and end with a letter or a digit"},
		{"underscore last", "abc_", "must begin and end with a letter or a digit"},
		{"reserved", "api", `must not be reserved, Slug "api"`},
		{"reserved in another case", "Api", `must not be reserved, Slug "Api"`},
		{"reserved in lower case", "healthz", `must not be reserved, Slug "healthz"`},
		{name: "official word as a part", text: "login-party"},
		{name: "official word in the plural", text: "abuses"},
		{name: "nearly an official word", text: "mall"},
		{"of the setting", "jobs", `must not be reserved, Slug "jobs"`},
		{"of the setting, otherwise written", "BigSa1e", `must not be reserved, Slug "BigSa1e"`},
	}
	for _, text := range []string{
		"login", "Login", "LOGIN", "l0gin", "log1n", "Iogin", "log-in", "log_in", "admin", "ADMlN", "adrnin", "abuse", "a-buse", "security", "5ecurity",
		"support", "supp0rt", "SUPP-ORT", "verify", "VERlFY", "vvebmail", "sign-in", "help", "he1p", "password", "account", "billing", "status",
	} {
		rows = append(rows, struct{ name, text, reason string }{"official: " + text, text, fmt.Sprintf("must not be reserved, Slug %q", text)})
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
			if invalid.Field != "slug" || !errors.Is(err, ErrInvalidSlug) || invalid.Reason.Error() != row.reason {
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

// The documents name each word, and no word could not be a slug.
func TestOfficialSlugs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if list := "`" + strings.Join(officialSlugs, "`, `") + "`"; !strings.Contains(string(text), list) {
		t.Errorf("docs/api.md does not have this list: %s", list)
	}
	for _, word := range officialSlugs {
		if _, ok := ParseSlug(word); !ok {
			t.Errorf("%q could not be a slug", word)
		}
	}
}

// A word is found in any case, behind look-alikes and anywhere, and most slugs spell none.
func TestSpellsWord(t *testing.T) {
	t.Parallel()
	for _, slug := range []Slug{"xxshitx", "SH1Tabc", "5hi7abc", "abcFuCK", "fvckabc", "4ssabcd", "xsL7Uxx", "xxSLUTx", "xn4Zixx", "xxxxpr0p0rn", "8itchxx"} {
		if want := slug != "xsL7Uxx"; SpellsWord(slug) != want {
			t.Errorf("%q spells a word: %t, want %t", slug, !want, want)
		}
	}
	const draws = 100_000
	spelled := 0
	for range draws {
		if SpellsWord(drawSlug()) {
			spelled++
		}
	}
	// The documents say one in 300.
	if spelled < draws/500 || spelled > draws/200 {
		t.Errorf("%d of %d slugs spell a word", spelled, draws)
	}
}
