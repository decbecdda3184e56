package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store"
)

// uiVariable names the environment variable with the URL of the Temporal UI; make test
// sets it.
const uiVariable = "CRITICIZER_TEST_TEMPORAL_UI"

// A reset of a dead-lettered review in the Temporal UI replays only the failed stage
// (processing 8.5). It is listed as an unexplained reset, because no operator recorded a
// reason before.
func TestResetInTheBrowser(t *testing.T) {
	t.Parallel()
	ui := os.Getenv(uiVariable)
	if ui == "" {
		need(t, uiVariable+" is not set: run the test with make test")
	}
	browser := newBrowser(t)
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	in.rejectKey(1)
	id := in.deadLetter("1", failure.AuthDenied)
	before := in.calls(1)
	browser.resetToLastTask(t, fmt.Sprintf("%s/namespaces/%s/workflows/%s", ui, in.temporal.Name, id), "INC-42: key renewed")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
	if after := in.calls(1); after.p4 != before.p4 || after.model != before.model+1 || after.mails != 1 {
		t.Errorf("calls %+v before the reset and %+v after it", before, after)
	}
	var listed []struct {
		ID          int64 `json:"id"`
		Unexplained bool  `json:"unexplained"`
	}
	in.criticizerJSON(&listed, "deadletter", "list", "--unexplained", "--state", "all")
	if len(listed) != 1 || !listed[0].Unexplained {
		t.Errorf("listed as unexplained are %+v, want the one letter", listed)
	}
	var shown struct{ Replays []store.Replay }
	in.criticizerJSON(&shown, "deadletter", "show", "1")
	if len(shown.Replays) != 1 || !strings.HasPrefix(shown.Replays[0].Reason, "INC-42: key renewed") || shown.Replays[0].Explained {
		t.Errorf("replays are %+v, want one, unexplained, with the typed reason", shown.Replays)
	}
}

// A browser is a tab of Chromium.
type browser struct{ tab context.Context }

func newBrowser(t *testing.T) browser {
	t.Helper()
	path := program(t, "chromium", "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1400, 1000),
		chromedp.Env("TMPDIR="+t.TempDir()))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(tab) // the browser removes its files; it fails if the browser did not start
		closeTab()
		stop()
	})
	return browser{tab}
}

// resetToLastTask clicks through the reset dialog on the page of a workflow.
func (b browser) resetToLastTask(t *testing.T, page, reason string) {
	t.Helper()
	if err := chromedp.Do(b.tab, chromedp.Navigate(page)); err != nil { // starts the browser, which ends with this context
		t.Fatal(err)
	}
	b.click(t, `button`, "Reset")
	b.click(t, `dialog[open] [data-testid="workflow-reset-event-id-select-button"]`, "")
	b.click(t, `dialog[open] ul[role="listbox"] li:last-of-type`, "")
	ctx, cancel := context.WithTimeout(b.tab, testTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS(`dialog[open] [data-testid="reset-reason"]`), reason)); err != nil {
		t.Fatalf("type the reason: %v%s", err, b.screenshot(t))
	}
	b.click(t, `dialog[open] [data-testid="confirm-modal-button"]`, "")
}

// click waits for the first visible and enabled element, with the text if one is given,
// and clicks it.
func (b browser) click(t *testing.T, selector, text string) {
	t.Helper()
	script := fmt.Sprintf(`(() => {
		const seen = [...document.querySelectorAll(%q)].find(e => e.getClientRects().length > 0 && !e.disabled && [e.textContent.trim(), ""].includes(%q))
		seen?.click()
		return !!seen
	})()`, selector, text)
	clicked := poll(testTimeout, 100*time.Millisecond, func() bool {
		clicked, err := chromedp.Run(b.tab, chromedp.Evaluate[bool](script))
		if err != nil {
			t.Fatalf("click %s: %v", selector, err)
		}
		return clicked
	})
	if !clicked {
		t.Fatalf("there is no %s %q to click%s", selector, text, b.screenshot(t))
	}
}

// screenshot saves an image of the tab and returns a note with its path.
func (b browser) screenshot(t *testing.T) string {
	t.Helper()
	png, err := chromedp.Run(b.tab, chromedp.CaptureScreenshot())
	if err != nil {
		return ""
	}
	file, err := os.CreateTemp("", "criticizer-browser-*.png")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(png); err != nil {
		return ""
	}
	return ": see " + file.Name()
}
