package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/criticizer/criticizer/internal/failure"
)

// uiVariable names the Temporal UI of the server under test; make test sets it.
const uiVariable = "CRITICIZER_TEST_TEMPORAL_UI"

// Criticizer-processing 8.5: an operator who opens a dead-lettered review in the
// Temporal UI and clicks Reset replays the failed stage, and only that. That
// nobody recorded evidence before is listed.
func TestResetInTheBrowser(t *testing.T) {
	t.Parallel()
	ui := os.Getenv(uiVariable)
	if ui == "" {
		t.Skipf("SKIPPED, no Temporal UI: %s is not set; make test sets it", uiVariable)
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
	if err := json.Unmarshal([]byte(in.criticizer("deadletter", "list", "--unexplained", "--state", "all", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || !listed[0].Unexplained {
		t.Errorf("listed as unexplained are %+v, want the one letter", listed)
	}
	if shown := in.criticizer("deadletter", "show", "1"); !strings.Contains(shown, "INC-42: key renewed") {
		t.Errorf("the reason typed is not shown:\n%s", shown)
	}
}

// A browser is a tab of Chromium.
type browser struct{ tab context.Context }

// newBrowser starts Chromium, and skips the test where there is none.
func newBrowser(t *testing.T) browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED, no Chromium on PATH: a reset in the Temporal UI is not tested")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1400, 1000))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() { closeTab(); stop() })
	return browser{tab}
}

// resetToLastTask does what an operator does on the page of a workflow.
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

// click clicks the first element that is seen, has the text if one is given, and
// can be clicked.
func (b browser) click(t *testing.T, selector, text string) {
	t.Helper()
	script := fmt.Sprintf(`(() => {
		const seen = [...document.querySelectorAll(%q)].find(e => e.getClientRects().length > 0 && !e.disabled && [e.textContent.trim(), ""].includes(%q))
		seen?.click()
		return !!seen
	})()`, selector, text)
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(100 * time.Millisecond) {
		clicked, err := chromedp.Run(b.tab, chromedp.Evaluate[bool](script))
		if err != nil {
			t.Fatalf("click %s: %v", selector, err)
		}
		if clicked {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s %q to click%s", selector, text, b.screenshot(t))
		}
	}
}

// picture keeps what the tab shows, and says where.
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
