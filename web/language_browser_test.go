package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowserSpeaks is about the languages of the pages, with Chromium.
func TestBrowserSpeaks(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for name, journey := range map[string]func(*testing.T, context.Context){
		"Japanese":               speaksJapanese,
		"what was chosen":        speaksWhatWasChosen,
		"Korean, without script": speaksKoreanWithoutScript,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journey(t, chromium)
		})
	}
}

// prefers sets the language that the browser asks for.
func (v *tab) prefers(tag string) {
	v.t.Helper()
	call(v, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Mozilla/5.0", AcceptLanguage: tag})
}

func (v *tab) wantLanguage(tag string) {
	v.t.Helper()
	v.do(chromedp.WaitReady(chromedp.CSS("html[lang=" + tag + "] [hreflang=" + tag + "][aria-current]")))
}

func speaksJapanese(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 3})
	v := openTab(t, chromium, s.origin)
	v.prefers("ja-JP")
	v.do(chromedp.EmulateViewport(320, 640), chromedp.Navigate(s.origin+"/"))
	v.wantLanguage("ja")
	v.wantText("allowance", "1日に3件作成できます。今日はあと3件です。 現地時間09:00(00:00 UTC)にリセットされます。")
	if width := get(v, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		t.Errorf("the form is %d wide on a screen of 320", width)
	}
	v.enter("ftp://example.org/")
	v.wantText("problem", "このリンク: http://またはhttps://で始めてください。省略できるのは、example.org/pageのようにドットのあるホストだけです。")
	v.fill("url", "https://example.org/page")
	v.do(chromedp.Click(chromedp.CSS("summary")))
	v.fill("slug", "a b")
	v.do(chromedp.SendKeys(chromedp.ID("slug"), kb.Enter))
	v.wantText("slug-problem", `この名前: " "は使えません。使えるのはA–Z、a–z、0–9、-、_です。`)
	v.fill("slug", "My-Event")
	get(v, chromedp.Evaluate[chromedp.Void](`document.getElementById('expires_at').value = '2030-01-31T18:00'`))
	v.fill("max_visits", "3")
	v.do(chromedp.SendKeys(chromedp.ID("max_visits"), kb.Enter))
	v.wantFocus("#short")
	v.wantText("made", "短いリンク コピー リンク先 https://example.org/page 終了日時: 現地時間2030年1月31日 18:00(2030年1月31日 09:00 UTC) "+
		"終了までのアクセス回数: 3 開く この管理用リンクを保管してください。短いリンクの変更や削除に使えます。")
	v.wantText("allowance", "1日に3件作成できます。今日はあと2件です。 現地時間09:00(00:00 UTC)にリセットされます。")

	v.goes(chromedp.Click(chromedp.CSS("#kept-links .manage")))
	v.wantText("visits", "3回中0回使用")
	v.wantText("people", "人によるアクセス: 0回。")
	v.wantLanguage("ja")
	if got := get(v, chromedp.Title()); got != "My-Eventの管理 – Snip" {
		t.Errorf("title %q", got)
	}
	v.fill("max_visits", "many")
	v.do(chromedp.SendKeys(chromedp.ID("max_visits"), kb.Enter))
	v.wantText("max_visits-problem", "アクセス回数: 1から10000までの整数にしてください。")
	v.fill("max_visits", "4")
	v.do(chromedp.SendKeys(chromedp.ID("max_visits"), kb.Enter))
	v.wantText("saved", "保存しました。")
	v.wantText("visits", "4回中0回使用")
	v.do(chromedp.Click(chromedp.ID("delete")), chromedp.Click(chromedp.CSS("#deleting button[value=yes]")))
	v.wantText("state", "リンクを削除しました。")
	v.wantVisit(s.origin+"/My-Event", http.StatusGone, "")
}

func speaksWhatWasChosen(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 3, prefix: "/to"})
	v := openTab(t, chromium, s.origin+"/to")
	v.do(chromedp.Navigate(s.origin + "/to/?x=y"))
	v.wantLanguage("en")
	v.goes(chromedp.Click(chromedp.CSS("[hreflang=ja]")))
	v.wantLanguage("ja")
	if at := get(v, chromedp.Location()); at != s.origin+"/to/?lang=ja" {
		t.Errorf("the switch leads to %s", at)
	}
	v.enter("https://example.org/")
	v.wantFocus("#short")
	v.wantLink(s.origin+"/to/", "https://example.org/")
	if short := get(v, chromedp.Value(chromedp.ID("short"))); strings.Contains(short, "?") {
		t.Errorf("the short link is %s", short)
	}
	v.goes(chromedp.Click(chromedp.CSS(".made .manage")))
	v.do(chromedp.WaitVisible(chromedp.ID("managed")))
	v.wantLanguage("ja")

	// The browser prefers English, and the script asks for the page's language.
	v.fill("url", "ftp://example.org/")
	v.enter("")
	v.wantText("url-problem", "このリンク: http://またはhttps://で始めてください。省略できるのは、example.org/pageのようにドットのあるホストだけです。")

	// Which link it is stands in the fragment, which the switch keeps.
	before := get(v, chromedp.Location())
	v.goes(chromedp.Click(chromedp.CSS("[hreflang=ko]")))
	v.do(chromedp.WaitVisible(chromedp.ID("managed")))
	v.wantLanguage("ko")
	v.wantText("people", "사람의 방문: 0회.")
	if after := get(v, chromedp.Location()); after != strings.Replace(before, "lang=ja", "lang=ko", 1) || !strings.Contains(after, "#") {
		t.Errorf("the switch leads from %s to %s", before, after)
	}
	v.goes(chromedp.Click(chromedp.CSS(".home")))
	v.wantLanguage("ko")
	v.wantText("allowance", "하루에 링크 3개를 만들 수 있으며, 오늘은 2개 남았습니다. 현지 시각 09:00(00:00 UTC)에 새로 시작합니다.")
}

func speaksKoreanWithoutScript(t *testing.T, chromium context.Context) {
	s := openSite(t, siteConfig{daily: 1})
	v := openTab(t, chromium, s.origin)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.do(chromedp.Navigate(s.origin + "/?lang=ko"))
	v.wantLanguage("ko")
	if response := v.submit("ftp://example.org/"); response.Status != http.StatusBadRequest {
		t.Fatalf("status %d", response.Status)
	}
	v.wantText("problem", "이 링크: http:// 또는 https://로 시작해야 합니다. example.org/page처럼 점이 있는 호스트만 생략할 수 있습니다.")
	v.wantLanguage("ko")
	v.goes(chromedp.Click(chromedp.CSS("[hreflang=ja]"))) // there is no address to go back to but the form's
	v.wantLanguage("ja")
	v.goes(chromedp.Click(chromedp.CSS("[hreflang=ko]")))
	if response := v.submit("https://example.org/"); response.Status != http.StatusCreated {
		t.Fatalf("status %d", response.Status)
	}
	v.do(chromedp.WaitReady(chromedp.CSS("html[lang=ko]")))
	v.wantLink(s.origin+"/", "https://example.org/")
	v.goes(chromedp.Click(chromedp.CSS(".next a")))
	v.wantLanguage("ko")
	if got, want := v.text("allowance"), "하루에 링크 1개를 만들 수 있으며, 오늘은 0개 남았습니다. 00:00 UTC에 다시 열립니다."; got != want {
		t.Errorf("allowance: %q, want %q", got, want)
	}
	if response := v.submit("https://example.org/"); response.Status != http.StatusTooManyRequests {
		t.Fatalf("status %d", response.Status)
	}
	if got, want := v.text("problem"), "지금은 링크를 더 만들 수 없습니다. 같은 IP 주소를 쓰는 사람 등 다른 사람과 한도를 함께 쓰고 있을 수 있습니다. 00:00 UTC 이후에 다시 시도해 주세요."; got != want {
		t.Errorf("problem: %q, want %q", got, want)
	}
}
