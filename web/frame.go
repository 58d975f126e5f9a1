package web

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"strings"

	"snip/shortener"
	"snip/static"
)

//go:embed templates/*.html
var templates embed.FS

// snipJS is the script that all others build on.
const snipJS = "snip.js"

// frame is what surrounds a page.
type frame struct {
	choice
	Title    string
	Unlisted bool     // kept out of search engines
	Styles   []string // beside the style sheet that all pages share
	Scripts  []string
	Words    map[string]any // what the scripts say
	Switch   []switchLink
	Social   *social // nil leaves it to other sites what they show of the page

	Prefix     string // the path that every route begins with, without a slash at its end
	Contact    string
	ContactURL string
}

// switchLink leads to a page in another language.
type switchLink struct {
	Tag, Name, Href string
	Current         bool
}

// social is what other sites show of a page, by the tags of https://ogp.me.
type social struct{ Title, Description string }

// Asset returns the path of a file of package static.
func (f frame) Asset(name string) string { return f.Prefix + "/-/" + name }

// Picture returns the path of a link's QR code.
func (f frame) Picture(slug shortener.Slug) string { return f.Prefix + "/" + string(slug) + "/qr.svg" }

// To returns the address of a path, with the language if that was chosen. It is
// never one of a short link, whose query belongs to its visitors.
func (f frame) To(path string) string {
	if f.chosen {
		path += inLanguage(f.Tag)
	}
	return f.Prefix + path
}

func inLanguage(tag string) string { return "?lang=" + tag }

// switchAt lets the switch lead to another page than the one that it stands on,
// which has no address of its own.
func (f *frame) switchAt(path string) {
	for i := range f.Switch {
		f.Switch[i].Href = f.Prefix + path + inLanguage(f.Switch[i].Tag)
	}
}

// page returns the frame of one page, which loads these style sheets and scripts.
// The switch leads to the same path, and to nothing of its query but the language.
func (p *pages) page(c choice, heading message, files ...string) frame {
	f := p.frame
	f.choice, f.Unlisted = c, true
	for _, file := range files {
		if strings.HasSuffix(file, ".css") {
			f.Styles = append(f.Styles, file)
		} else {
			f.Scripts = append(f.Scripts, file)
		}
	}
	f.Title = c.render(say("title.page", "Heading", heading))
	for _, t := range p.languages.tongues {
		f.Switch = append(f.Switch, switchLink{t.Tag, t.Name, inLanguage(t.Tag), t == c.tongue})
	}
	if len(f.Scripts) > 0 {
		f.Words = make(map[string]any)
		for _, script := range f.Scripts {
			for _, key := range p.spoken[script] {
				f.Words[key] = c.word(key)
			}
		}
	}
	return f
}

// word is a sentence for a script: text, or its plural forms by their names.
func (t *tongue) word(key string) any {
	m := t.sentences[key]
	forms := map[string]string{"zero": m.Zero, "one": m.One, "two": m.Two, "few": m.Few, "many": m.Many, "other": m.Other}
	maps.DeleteFunc(forms, func(_, text string) bool { return text == "" })
	if len(forms) == 1 {
		return m.Other
	}
	return forms
}

func (p *pages) execute(w io.Writer, c choice, name string, data any) error {
	return p.templates[c.index].ExecuteTemplate(w, name, data)
}

// sides are what stands before and after an element in a sentence.
type sides struct{ Before, After string }

// parseTemplates returns the templates as they speak the language.
func parseTemplates(t *tongue) (*template.Template, error) {
	parsed, err := template.New("").Funcs(template.FuncMap{
		"say": func(key string, values ...any) string { return t.render(say(key, values...)) },
		"around": func(name, key string) sides {
			const element = "\x00"
			before, after, _ := strings.Cut(t.render(say(key, name, element)), element)
			return sides{before, after}
		},
	}).ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	return parsed, nil
}

var saidByScript = regexp.MustCompile(`\bsay\('([\w.]+)'`)

// spokenBy returns the keys that each script says.
func spokenBy(c *catalogue) (map[string][]string, error) {
	scripts, err := fs.Glob(static.Files, "*.js")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	spoken := make(map[string][]string)
	for _, name := range scripts {
		script, err := static.Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
		for _, said := range saidByScript.FindAllStringSubmatch(string(script), -1) {
			if c.english().sentences[said[1]] == nil {
				return nil, fmt.Errorf("pages: %s says %s, which is no sentence", name, said[1])
			}
			spoken[name] = append(spoken[name], said[1])
		}
	}
	return spoken, nil
}
