package inbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func inject(t *testing.T, b *Inbox, body string) (status int) {
	t.Helper()
	resp, err := http.Post(b.URL()+"/inbox/fault", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func TestFaultStrikesAtItsStageAndThenNoMore(t *testing.T) {
	t.Parallel()
	for _, stage := range []Stage{StageMail, StageRcpt, StageData, StageBody, StageDot, StageKept} {
		for _, tc := range []struct {
			fault string
			code  int // 0: the connection broke
		}{
			{`"action":"reply","code":421`, 421},
			{`"action":"reply","code":450,"enhanced":"4.2.0"`, 450},
			{`"action":"reply","code":550,"enhanced":"5.1.1"`, 550},
			{`"action":"reply","code":552`, 552},
			{`"action":"reply","code":554,"enhanced":"5.7.1"`, 554},
			{`"action":"drop"`, 0},
		} {
			t.Run(fmt.Sprint(stage, tc.fault), func(t *testing.T) {
				t.Parallel()
				b, _ := start(t, t.TempDir())
				if status := inject(t, b, fmt.Sprintf(`{"stage":%q,%s}`, stage, tc.fault)); status != http.StatusOK {
					t.Fatalf("inject: %d", status)
				}
				err := send(t, b, "ann@example.com", testMessage)
				if err == nil || code(err) != tc.code {
					t.Errorf("error %v, want code %d", err, tc.code)
				}
				kept := 0
				if stage == StageKept {
					kept = 1
				}
				if a := lookup(t, b, "one@example.com"); a.Copies != kept || !a.Settled {
					t.Errorf("look-up after the fault: %+v, want %d copies", a, kept)
				}
				mustSend(t, b, "ann@example.com", testMessage)
			})
		}
	}
}

func TestFaultStrikesAsOftenAsAsked(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	if err := b.Inject(Fault{Stage: StageRcpt, Action: ActionReply, Code: 450, Times: 3}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := send(t, b, "ann@example.com", testMessage); code(err) != 450 {
			t.Errorf("strike %d: %v", i+1, err)
		}
	}
	mustSend(t, b, "ann@example.com", testMessage)
	if err := b.Inject(Fault{Stage: StageRcpt, Action: ActionDrop}); err != nil {
		t.Fatal(err)
	}
	b.ClearFaults()
	mustSend(t, b, "ann@example.com", testMessage)
}

// waitForStrike waits until the only fault struck.
func waitForStrike(t *testing.T, b *Inbox) {
	t.Helper()
	for range 1000 {
		if len(b.faults.list()) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the fault did not strike")
}

// While a transaction hangs nobody may conclude that its message is absent.
func TestLookupIsUnsettledWhileATransactionIsOpen(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	if err := b.Inject(Fault{Stage: StageDot, Action: ActionHang, HangMS: 4500}); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(t, b, "ann@example.com", testMessage) }()
	waitForStrike(t, b)
	if a := lookup(t, b, "one@example.com"); a.Copies != 0 || a.Settled {
		t.Errorf("while it hangs: %+v", a)
	}
	if a := lookup(t, b, "one@example.com"); a.Copies != 1 || !a.Settled {
		t.Errorf("a look-up does not wait for what is open: %+v", a)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestStoppingEndsAHangingTransaction(t *testing.T) {
	t.Parallel()
	b, stop := start(t, t.TempDir())
	if err := b.Inject(Fault{Stage: StageBody, Action: ActionHang}); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(t, b, "ann@example.com", testMessage) }()
	waitForStrike(t, b)
	began := time.Now()
	stop()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("stopping took %s", d)
	}
	if err := <-sent; err == nil {
		t.Error("the sender was told nothing of the stop")
	}
}

func TestImpossibleFaultsAreRefused(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	for _, body := range []string{
		``, `[]`, `{"stage":"rcpt","action":"drop","unknown":1}`,
		`{"stage":"quit","action":"drop"}`,
		`{"stage":"rcpt","action":"explode"}`,
		`{"stage":"rcpt","action":"reply","code":250}`,
		`{"stage":"rcpt","action":"reply","code":550,"enhanced":"5.1.1\r\n250 ok"}`,
		`{"stage":"rcpt","action":"drop","times":-1}`,
	} {
		if status := inject(t, b, body); status != http.StatusBadRequest {
			t.Errorf("%s gives %d", body, status)
		}
	}
	if left := b.faults.list(); len(left) != 0 {
		t.Errorf("faults: %v", left)
	}
}
