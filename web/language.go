package web

import (
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

// languageFiles hold every sentence that people are shown, in each language.
//
//go:embed languages/*.json
var languageFiles embed.FS

// message is a sentence that has no language yet.
type message struct {
	key    string
	values map[string]any // numbers, text, and messages; Count picks the plural form
}

// say returns the message of that key with its values, each after its name.
// Templates and scripts have a say of their own, so that a search for it finds
// every key that is used.
func say(key string, values ...any) message {
	m := message{key: key}
	if len(values) > 0 {
		m.values = make(map[string]any, len(values)/2)
	}
	for i := 0; i < len(values); i += 2 {
		m.values[values[i].(string)] = values[i+1]
	}
	return m
}

// tongue is one of the languages.
type tongue struct {
	Tag       string // as in BCP 47
	Name      string // in the language itself
	index     int    // among the languages
	header    []string
	localizer *i18n.Localizer
	sentences map[string]*i18n.Message // as they stand in the file
	plain     map[string]string        // those that hold no value
}

// render returns the sentence. A key that is nowhere, which the tests rule out,
// stands for itself.
func (t *tongue) render(m message) string {
	if text, ok := t.plain[m.key]; ok && len(m.values) == 0 {
		return text
	}
	values := make(map[string]any, len(m.values))
	for name, value := range m.values {
		if inner, ok := value.(message); ok {
			value = t.render(inner)
		}
		values[name] = value
	}
	text, err := t.localizer.Localize(&i18n.LocalizeConfig{MessageID: m.key, TemplateData: values, PluralCount: values["Count"]})
	if err != nil && text == "" {
		return m.key
	}
	return text
}

// announce tells caches and readers which language an answer has.
func (t *tongue) announce(h http.Header) {
	h["Content-Language"] = t.header
	vary := "Accept-Language"
	if others := h.Get("Vary"); others != "" {
		vary = others + ", " + vary
	}
	h.Set("Vary", vary)
}

// catalogue is all languages, English first: whoever asks for none of them gets it.
type catalogue struct {
	tongues []*tongue
	matcher language.Matcher
}

func newCatalogue() (*catalogue, error) {
	c := &catalogue{tongues: []*tongue{
		{Tag: "en", Name: "English"},
		{Tag: "ko", Name: "한국어"},
		{Tag: "ja", Name: "日本語"},
	}}
	bundle := i18n.NewBundle(language.English)
	var tags []language.Tag
	for i, t := range c.tongues {
		file, err := bundle.LoadMessageFileFS(languageFiles, "languages/"+t.Tag+".json")
		if err != nil {
			return nil, fmt.Errorf("language %s: %w", t.Tag, err)
		}
		t.index, t.header = i, []string{t.Tag}
		t.localizer = i18n.NewLocalizer(bundle, t.Tag)
		t.sentences = make(map[string]*i18n.Message, len(file.Messages))
		t.plain = make(map[string]string)
		for _, m := range file.Messages {
			t.sentences[m.ID] = m
			if text, ok := t.word(m.ID).(string); ok && !strings.Contains(text, "{{") {
				t.plain[m.ID] = text
			}
		}
		tags = append(tags, file.Tag)
	}
	for _, t := range c.tongues {
		for key := range c.english().sentences {
			if t.sentences[key] == nil {
				return nil, fmt.Errorf("language %s: no sentence %s", t.Tag, key)
			}
		}
	}
	c.matcher = language.NewMatcher(tags)
	return c, nil
}

func (c *catalogue) english() *tongue { return c.tongues[0] }

// choice is the language that somebody reads.
type choice struct {
	*tongue
	chosen bool // in the address: then the pages hand it on
}

// maxAcceptLanguage bounds how much of the header is read, in bytes. Browsers send
// 100 at most where nobody has added languages.
const maxAcceptLanguage = 256

// choose returns the language that the address asks for, or else the one that the
// Accept-Language header prefers (RFC 9110, section 12.5.4).
func (c *catalogue) choose(r *http.Request) choice {
	if strings.Contains(r.URL.RawQuery, "lang=") {
		wanted := r.URL.Query().Get("lang")
		if i := slices.IndexFunc(c.tongues, func(t *tongue) bool { return t.Tag == wanted }); i >= 0 {
			return choice{c.tongues[i], true}
		}
	}
	lines := r.Header["Accept-Language"]
	if len(lines) == 0 { // programs, thousands of times a second
		return choice{tongue: c.english()}
	}
	header := strings.Join(lines, ",")
	if len(header) > maxAcceptLanguage {
		header = header[:maxAcceptLanguage]
		header = header[:strings.LastIndexByte(header, ',')+1] // no language is read by half
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return choice{tongue: c.english()}
	}
	_, i, _ := c.matcher.Match(wanted...)
	return choice{tongue: c.tongues[i]}
}
