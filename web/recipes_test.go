package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// shareX is a custom uploader's file, as far as it is simulated here.
type shareX struct {
	Version         string
	Name            string
	DestinationType string
	RequestMethod   string
	RequestURL      string
	Headers         map[string]string
	Body            string
	Arguments       map[string]string
	URL             string
	ErrorMessage    string
}

func readShareX(t *testing.T) shareX {
	t.Helper()
	file, err := os.Open("../docs/recipes/snip.sxcu")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var u shareX
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&u); err != nil {
		t.Fatal(err)
	}
	return u
}

// shorten does what ShareX does with the file: the input stands for {input} in
// the arguments, {json:name} is a field of the answer, and another status than 2xx
// shows the error message.
func (u shareX) shorten(t *testing.T, s *site, input string) (short, message string) {
	t.Helper()
	if u.DestinationType != "URLShortener" || u.Body != "FormURLEncoded" {
		t.Fatalf("a %s with the body %s is not simulated", u.DestinationType, u.Body)
	}
	form := make(url.Values)
	for name, value := range u.Arguments {
		form.Set(name, strings.ReplaceAll(value, "{input}", input))
	}
	header := map[string]string{"Content-Type": mediaForm, "User-Agent": "ShareX/" + u.Version}
	for name, value := range u.Headers {
		header[name] = value
	}
	w := s.do(call{method: u.RequestMethod, target: u.RequestURL, body: form.Encode(), header: header})
	field := func(syntax string) string {
		name, isJSON := strings.CutPrefix(syntax, "{json:")
		name, isClosed := strings.CutSuffix(name, "}")
		var answer map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || !isJSON || !isClosed {
			t.Fatalf("%s of %q: %v", syntax, w.Body, err)
		}
		text, _ := answer[name].(string)
		return text
	}
	if w.Code < 200 || w.Code > 299 {
		return "", field(u.ErrorMessage)
	}
	return field(u.URL), ""
}

func TestShareX(t *testing.T) {
	t.Parallel()
	u := readShareX(t)
	s := newSite(t, siteSetup{public: "http://localhost:8080"})
	for _, input := range []string{
		"https://example.org/", "https://example.org/a?b=1&c=2+3#d%20e", `https://example.org/"\{json:x}%y`, "https://example.org/ü/日本",
	} {
		short, message := u.shorten(t, s, input)
		if message != "" || !strings.HasPrefix(short, "http://localhost:8080/") {
			t.Fatalf("%s: short URL %q, message %q", input, short, message)
		}
		var shown shownLink
		w := s.do(call{method: "GET", target: short + "+"})
		if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || shown.URL == nil || *shown.URL != input {
			t.Errorf("%s: the link is %s, %v", input, w.Body, err)
		}
	}
	if short, message := u.shorten(t, s, "mailto:a@example.org"); short != "" || !strings.HasPrefix(message, "url: must ") {
		t.Errorf("short URL %q, message %q", short, message)
	}
}

// The actions of the recipe for iOS: a JSON body, then a field of the answer.
func TestShortcuts(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	header := map[string]string{"Content-Type": "application/json", "Accept": "*/*", "User-Agent": "BackgroundShortcutRunner/1146.14 CFNetwork/1410.1 Darwin/22.6.0"}
	wantAnswer(t, s.do(call{body: `{"url":"https:\/\/example.org\/"}`, header: header}), http.StatusCreated, `"short_url":"https://s.example/`)
	wantAnswer(t, s.do(call{body: `{"url":"mailto:a@example.org"}`, header: header}), http.StatusBadRequest, `"detail":"url: must `)
}

var retryRecipe = regexp.MustCompile("(?s)```sh\n([^`]*Idempotency-Key[^`]*)```")

// The recipes for retries send one key of their own, and nothing where none can be
// made: what is sent without one makes a link at each try.
func TestRetryRecipes(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"api.md", "recipes.md"} {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		recipe := retryRecipe.FindSubmatch(text)
		if recipe == nil {
			t.Fatalf("%s has no recipe", page)
		}
		for _, row := range []struct {
			openssl string // empty is none
			sends   bool
		}{{"echo 0123456789abcdef0123456789abcdef", true}, {"exit 1", false}, {"true", false}, {"", false}} {
			programs := t.TempDir()
			add := func(name, script string) {
				if err := os.WriteFile(programs+"/"+name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			add("curl", `printf '%s\n' "$@"`)
			if row.openssl != "" {
				add("openssl", row.openssl)
			}
			shell := exec.Command("/bin/sh", "-c", string(recipe[1]))
			shell.Env = []string{"PATH=" + programs}
			sent, err := shell.Output()
			if row.sends != (err == nil) || row.sends != strings.Contains(string(sent), "\nIdempotency-Key: 0123456789abcdef0123456789abcdef\n") || !row.sends && len(sent) > 0 {
				t.Errorf("%s with openssl as %q sends %q, %v", page, row.openssl, sent, err)
			}
		}
	}
}
