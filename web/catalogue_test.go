package web

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"snip/static"
)

// sentencesOf returns a language's sentences by key, each by its plural forms;
// one that has none has the form "other". A key that is there twice is an error
// of this JSON package.
func sentencesOf(t *testing.T, tag string) map[string]map[string]string {
	t.Helper()
	file, err := languageFiles.ReadFile("languages/" + tag + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(file, &raw); err != nil {
		t.Fatalf("%s: %v", tag, err)
	}
	sentences := make(map[string]map[string]string)
	for key, value := range raw {
		sentences[key] = make(map[string]string)
		switch v := value.(type) {
		case string:
			sentences[key]["other"] = v
		case map[string]any:
			for form, text := range v {
				sentences[key][form] = text.(string)
			}
		}
	}
	return sentences
}

var placeholder = regexp.MustCompile(`\{\{\.([A-Z]\w*)\}\}`)

func placeholdersOf(text string) []string {
	var names []string
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// formsOf are the plural forms that the numbers of the language have.
func formsOf(tag string) []string {
	names := map[plural.Form]string{plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other"}
	var forms []string
	for n := range 1000 {
		forms = append(forms, names[plural.Cardinal.MatchPlural(language.Make(tag), n, 0, 0, 0, 0)])
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// Every language says what English says, in all forms that its numbers have.
func TestCatalogueIsWhole(t *testing.T) {
	t.Parallel()
	english := sentencesOf(t, "en")
	files, err := fs.Glob(languageFiles, "languages/*")
	if tongues := testCatalogue(t).tongues; err != nil || len(files) != len(tongues) {
		t.Errorf("%d languages of the files %v, %v", len(tongues), files, err)
	}
	for _, tongue := range testCatalogue(t).tongues {
		sentences := sentencesOf(t, tongue.Tag)
		for key := range sentences {
			if english[key] == nil {
				t.Errorf("%s: %s is no sentence of English", tongue.Tag, key)
			}
		}
		for key, texts := range english {
			want := placeholdersOf(texts["other"])
			counted := slices.Contains(want, "Count")
			forms := []string{"other"}
			if counted {
				forms = formsOf(tongue.Tag)
			}
			if got := slices.Sorted(maps.Keys(sentences[key])); !slices.Equal(got, forms) {
				t.Errorf("%s: %s has the forms %v, want %v", tongue.Tag, key, got, forms)
			}
			for form, text := range sentences[key] {
				got := placeholdersOf(text)
				if counted && form != "other" && !slices.Contains(got, "Count") { // "every second" needs no number
					got = append(got, "Count")
					slices.Sort(got)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: %s (%s) has the placeholders %v, want %v", tongue.Tag, key, form, got, want)
				}
				if rest := placeholder.ReplaceAllString(text, ""); text == "" || strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
					t.Errorf("%s: %s (%s) is %q", tongue.Tag, key, form, text)
				}
			}
		}
	}
}

// What is not English has letters of its own, but for what has none at all.
func TestCatalogueIsTranslated(t *testing.T) {
	t.Parallel()
	alike := map[string]bool{"title.page": true, "visits.comma": true, "visits.bar": true}
	for tag, scripts := range map[string][]*unicode.RangeTable{
		"ko": {unicode.Hangul},
		"ja": {unicode.Hiragana, unicode.Katakana, unicode.Han},
	} {
		for key, texts := range sentencesOf(t, tag) {
			for form, text := range texts {
				if own := strings.ContainsFunc(text, func(c rune) bool { return unicode.In(c, scripts...) }); own == alike[key] {
					t.Errorf("%s: %s (%s) is %q", tag, key, form, text)
				}
			}
		}
	}
}

// spoken is a place that says a sentence.
type spoken struct {
	where, key string
	values     []string
}

var (
	spokenInGo       = regexp.MustCompile(`\bsay\("([\w.]+)"`)
	spokenInTemplate = regexp.MustCompile(`\bsay "([\w.]+)"`)
	spokenAround     = regexp.MustCompile(`\baround "(\w+)" "([\w.]+)"`)
	reasonInGo       = regexp.MustCompile(`\bbecause\("(\w+)"`)
	valueInGo        = regexp.MustCompile(`"([A-Z]\w*)"`)
	valueInScript    = regexp.MustCompile(`\b([A-Z]\w*):`)
)

// ownText returns what of text stands at the depth of brackets, up to where the
// brackets end that it begins in.
func ownText(text string, depth int) string {
	var own strings.Builder
	at := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			at++
		case ')', '}', ']':
			at--
		}
		if at < 0 {
			break
		}
		if at == depth {
			own.WriteByte(text[i])
		}
	}
	return own.String()
}

// allSpoken finds every sentence that is said in Go, in templates and in scripts.
func allSpoken(t *testing.T) []spoken {
	t.Helper()
	var all []spoken
	search := func(where, text, prefix string, key, value *regexp.Regexp, depth int) {
		for _, at := range key.FindAllStringSubmatchIndex(text, -1) {
			s := spoken{where: where, key: prefix + text[at[2]:at[3]]}
			for _, name := range value.FindAllStringSubmatch(ownText(text[at[1]:], depth), -1) {
				s.values = append(s.values, name[1])
			}
			all = append(all, s)
		}
	}
	read := func(files fs.FS, pattern string, each func(name, text string)) {
		names, err := fs.Glob(files, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			content, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			each(name, string(content))
		}
	}
	read(os.DirFS("."), "*.go", func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			search(name, text, "", spokenInGo, valueInGo, 0)
		}
	})
	read(os.DirFS("../shortener"), "*.go", func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			search(name, text, "reason.", reasonInGo, valueInGo, 0)
		}
	})
	read(templates, "templates/*", func(name, text string) {
		search(name, text, "", spokenInTemplate, valueInGo, 0)
		for _, said := range spokenAround.FindAllStringSubmatch(text, -1) {
			all = append(all, spoken{name, said[2], said[1:2]})
		}
	})
	read(static.Files, "*.js", func(name, text string) {
		search(name, text, "", saidByScript, valueInScript, 1)
	})
	return all
}

// Every sentence is said somewhere, and whoever says one says one that there is,
// with the values that it has.
func TestCatalogueIsSpoken(t *testing.T) {
	t.Parallel()
	english := sentencesOf(t, "en")
	unused := maps.Clone(english)
	all := allSpoken(t)
	for _, s := range all {
		delete(unused, s.key)
		texts, ok := english[s.key]
		if !ok {
			t.Errorf("%s says %s, which is no sentence", s.where, s.key)
			continue
		}
		slices.Sort(s.values)
		if want := placeholdersOf(texts["other"]); !slices.Equal(s.values, want) {
			t.Errorf("%s says %s with %v, want %v", s.where, s.key, s.values, want)
		}
	}
	for key := range unused {
		t.Errorf("nobody says %s", key)
	}
	if len(all) < 200 {
		t.Errorf("only %d places were found", len(all))
	}
}

var (
	literal = regexp.MustCompile("'[^'\n]*'|`[^`]*`")
	words   = regexp.MustCompile(`[A-Za-z]{2,}[,.]? [a-z]{2,}`)
	comment = regexp.MustCompile(`(?m)//.*$|(?s)/\*.*?\*/`)
)

// No script has a sentence of its own.
func TestScriptsHaveNoSentences(t *testing.T) {
	t.Parallel()
	others := []string{"'use strict'", "'.row, li'", "'input, button'", "'list allowance'", "'problem list allowance'"}
	for name := range testPages(t, Config{}).spoken {
		script, err := static.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range literal.FindAllString(comment.ReplaceAllString(string(script), ""), -1) {
			if words.MatchString(text) && !slices.Contains(others, text) {
				t.Errorf("%s says %s", name, text)
			}
		}
	}
	if !words.MatchString("'Nothing to save.'") || words.MatchString("`Bearer ${token}`") {
		t.Error("sentences are not told from the rest")
	}
}
