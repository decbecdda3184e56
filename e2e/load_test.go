package e2e

// Parts of make scale: a depot of many changes, the use of processor and
// memory by running processes, and the count of the mails.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// minutesOf returns the length of a run that make TARGET sets in a variable. Without the
// variable it skips the test.
func minutesOf(t *testing.T, target, variable string) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		t.Skipf("make %s runs it", target)
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || minutes <= 0 {
		t.Fatalf("%s is %q, want a number of minutes", variable, text)
	}
	return time.Duration(minutes * float64(time.Minute))
}

// recipientsOf returns the addresses that get a mail about each change of writeDepot.
func recipientsOf(subscribers []string) []string {
	addresses := []string{"alice@corp.test"}
	for _, name := range subscribers {
		addresses = append(addresses, name+"@corp.test")
	}
	return addresses
}

// writeDepot writes a depot of n changes by alice, to which others have subscribed.
func writeDepot(t *testing.T, n int, subscribers ...string) (path string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("-- user alice alice@corp.test Alice --\n")
	for _, name := range subscribers {
		_, _ = fmt.Fprintf(&text, "-- user %[1]s %[1]s@corp.test Reader --\n//depot/...\n", name)
	}
	for i := range n {
		_, _ = fmt.Fprintf(&text, "-- change %[1]d user=alice --\nChange number %[1]d.\n-- add text //depot/module%[1]d/a.go --\n%[2]s", i+1, faulty)
	}
	path = filepath.Join(t.TempDir(), "depot.txtar")
	writeFile(t, path, 0o600, text.String())
	return path
}

// A verdict lists the mails that did not arrive exactly once.
type verdict struct {
	lost, doubled, unexpected []string
}

// judge compares the mails that arrived with one per review and recipient. The reviews are
// those of the changes 1 to reviews.
func judge(reviews int, recipients []string, arrived []inbox.Entry) (v verdict) {
	copies := map[string]int{}
	for _, mail := range arrived {
		for _, to := range mail.To {
			copies[shortSubject(mail.Subject)+" to "+to]++
		}
	}
	for n := range reviews {
		for _, recipient := range recipients {
			mail := subjectOf(n+1) + " to " + recipient
			switch count := copies[mail]; {
			case count == 0:
				v.lost = append(v.lost, mail)
			case count > 1:
				v.doubled = append(v.doubled, fmt.Sprintf("%s, %d times", mail, count))
			}
			delete(copies, mail)
		}
	}
	for mail := range copies {
		v.unexpected = append(v.unexpected, mail)
	}
	return v
}

func (v verdict) err() error {
	if len(v.lost)+len(v.doubled)+len(v.unexpected) == 0 {
		return nil
	}
	return fmt.Errorf("%d mails lost %q, %d doubled %q, %d unexpected %q",
		len(v.lost), firstOf(v.lost), len(v.doubled), firstOf(v.doubled), len(v.unexpected), firstOf(v.unexpected))
}

// firstOf shortens a list for a message.
func firstOf(all []string) []string { return all[:min(len(all), 10)] }

func TestLostAndDoubledMailsAreCounted(t *testing.T) {
	t.Parallel()
	recipients := recipientsOf([]string{"rita"})
	mail := func(changelist int, to ...string) inbox.Entry {
		return inbox.Entry{To: to, Subject: subjectOf(changelist) + ": Change"}
	}
	both := mail(1, recipients...)
	for name, tt := range map[string]struct {
		arrived                   []inbox.Entry
		lost, doubled, unexpected int
	}{
		"each once":                    {[]inbox.Entry{both, mail(2, recipients[0]), mail(2, recipients[1])}, 0, 0, 0},
		"one recipient lost":           {[]inbox.Entry{both, mail(2, recipients[0])}, 1, 0, 0},
		"a review without mails":       {[]inbox.Entry{both}, 2, 0, 0},
		"one doubled":                  {[]inbox.Entry{both, mail(2, recipients...), mail(2, recipients[1])}, 0, 1, 0},
		"one lost for another doubled": {[]inbox.Entry{both, mail(1, recipients[0]), mail(2, recipients[0])}, 1, 1, 0},
		"to a third person":            {[]inbox.Entry{both, mail(2, recipients...), mail(2, "eve@corp.test")}, 0, 0, 1},
		"about a change not started":   {[]inbox.Entry{both, mail(2, recipients...), mail(22, recipients[0])}, 0, 0, 1},
	} {
		v := judge(2, recipients, tt.arrived)
		if len(v.lost) != tt.lost || len(v.doubled) != tt.doubled || len(v.unexpected) != tt.unexpected {
			t.Errorf("%s: %+v, want %d lost, %d doubled, %d unexpected", name, v, tt.lost, tt.doubled, tt.unexpected)
		}
		if passed := tt.lost+tt.doubled+tt.unexpected == 0; (v.err() == nil) != passed {
			t.Errorf("%s: the verdict is %v", name, v.err())
		}
	}
}

// processorTime returns what a process and its descendants have used, those that have
// ended included.
func processorTime(pid int) time.Duration {
	const ticksPerSecond = 100 // USER_HZ, the same on all Linux machines
	children, ticks := map[int][]int{}, map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third on
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], id)
		for _, used := range fields[11:15] { // utime, stime, cutime, cstime
			n, _ := strconv.Atoi(used)
			ticks[id] += n
		}
	}
	var sum func(id int) int
	sum = func(id int) int {
		total := ticks[id]
		for _, child := range children[id] {
			total += sum(child)
		}
		return total
	}
	return time.Duration(sum(pid)) * time.Second / ticksPerSecond
}

// memoryOf returns a figure of /proc/PID/status in MB, 0 if the process has ended: VmRSS is
// the memory now, VmHWM the most so far.
func memoryOf(pid int, figure string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(text), "\n"+figure+":")
	if !found {
		return 0
	}
	kB, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kB / 1024
}
