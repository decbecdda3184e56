package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// uiVariable names the environment variable with the URL of the Temporal UI; make test
// sets it.
const uiVariable = "CRITICIZER_TEST_TEMPORAL_UI"

// The dead letter of a rejected key is the same, field by field, in Temporal's failure, in
// Postgres, in the command and in the Temporal UI (processing 8.4). A reset in the UI replays
// only the failed stage (processing 8.5). The typed reason is its replay record.
func TestDeadLetterInTheBrowser(t *testing.T) {
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
	page := fmt.Sprintf("%s/namespaces/%s/workflows/%s", ui, in.temporal.Name, id)

	letter, run := in.checkSameLetter(id)
	browser.waitForText(t, page+"/"+run+"/history", jsonFields(t, letter))

	before := in.calls(1)
	browser.resetToLastTask(t, page, "INC-42: key renewed")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
	if after := in.calls(1); after.p4 != before.p4 || after.model != before.model+1 || after.mails != 1 {
		t.Errorf("calls %+v before the reset and %+v after it", before, after)
	}
	var shown struct{ Replays []store.Replay }
	in.criticizerJSON(&shown, "deadletter", "show", "1")
	if len(shown.Replays) != 1 || !strings.HasPrefix(shown.Replays[0].Reason, "INC-42: key renewed") || !shown.Replays[0].Explained {
		t.Errorf("replays are %+v, want one, explained by the typed reason", shown.Replays)
	}
}

// checkSameLetter checks that the dead letter of changelist 1 is the same in Temporal's
// failure, in Postgres, in the command and in the search attributes. It returns the letter and
// the ID of its run.
func (in *installation) checkSameLetter(id string) (letter map[string]any, run string) {
	in.t.Helper()
	var row, shown map[string]any
	dead, ok := errors.AsType[*temporal.ApplicationError](in.namespace.GetWorkflow(in.t.Context(), id, "").Get(in.t.Context(), nil))
	if !ok || dead.Details(&letter) != nil || len(letter) != 8 || dead.Type() != letter["error_class"] {
		in.t.Fatalf("Temporal's failure is %v with %v, want the 8 fields of a dead letter and its class", dead, letter)
	}
	run = in.history(id, "")[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	in.queryRow(`select to_jsonb(l) from criticizer.dead_letters l`, &row)
	in.criticizerJSON(&shown, "deadletter", "show", "1")
	if !reflect.DeepEqual(row["payload"], any(letter)) {
		in.t.Errorf("Postgres has %v, Temporal %v", row["payload"], letter)
	}
	for field, want := range letter {
		if !reflect.DeepEqual(shown[field], want) {
			in.t.Errorf("the command shows %s %v, Temporal has %v", field, shown[field], want)
		}
		if column, ok := row[field]; ok && !sameMoment(column, want) && column != want {
			in.t.Errorf("the column %s is %v, Temporal has %v", field, column, want)
		}
	}
	for column, want := range map[string]any{"workflow_id": id, "run_id": run, "changelist_id": 1.0, "review_version": 1.0, "stage": "llm", "error_class": "AUTH_DENIED"} {
		field := strings.Replace(column, "changelist_id", "changelist", 1)
		if row[column] != want || field != "stage" && field != "error_class" && shown[field] != want {
			in.t.Errorf("%s is %v in Postgres and %v in the command, want %v", column, row[column], shown[field], want)
		}
	}
	described, err := in.namespace.DescribeWorkflow(in.t.Context(), id, "")
	if err != nil {
		in.t.Fatal(err)
	}
	attributes := described.TypedSearchAttributes
	class, _ := attributes.GetKeyword(contract.AttributeErrorClass)
	stage, _ := attributes.GetKeyword(contract.AttributeStage)
	changelist, _ := attributes.GetInt64(contract.AttributeChangelist)
	version, _ := attributes.GetInt64(contract.AttributeReviewVersion)
	if class != letter["error_class"] || stage != letter["stage"] || changelist != 1 || version != 1 {
		in.t.Errorf("search attributes are %s, %s, %d and %d", class, stage, changelist, version)
	}
	return letter, run
}

// sameMoment reports whether both are times that a column cannot tell apart.
func sameMoment(a, b any) bool {
	first, err := time.Parse(time.RFC3339Nano, fmt.Sprint(a))
	second, errSecond := time.Parse(time.RFC3339Nano, fmt.Sprint(b))
	return err == nil && errSecond == nil && first.Sub(second).Abs() < time.Microsecond
}

// jsonFields returns the fields of an object as JSON, and those of objects in it.
func jsonFields(t *testing.T, object map[string]any) (fields []string) {
	t.Helper()
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok {
			fields = append(fields, jsonFields(t, inner)...)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, fmt.Sprintf("%q: %s", name, text))
	}
	return fields
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

// waitForText opens a page and waits until it shows all texts.
func (b browser) waitForText(t *testing.T, page string, texts []string) {
	t.Helper()
	if err := chromedp.Do(b.tab, chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	var shown string
	missing := func(text string) bool { return !strings.Contains(shown, text) }
	found := poll(testTimeout, 100*time.Millisecond, func() bool {
		var err error
		if shown, err = chromedp.Run(b.tab, chromedp.Evaluate[string](`document.body.innerText`)); err != nil {
			t.Fatalf("read %s: %v", page, err)
		}
		return !slices.ContainsFunc(texts, missing)
	})
	if !found {
		t.Errorf("%s lacks %q%s:\n%s", page, slices.DeleteFunc(texts, func(text string) bool { return !missing(text) }), b.screenshot(t), shown)
	}
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
