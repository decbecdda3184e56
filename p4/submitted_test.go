package p4

import (
	"fmt"
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A range over the account's limits is halved until it is not. If a single number is over them, the search cannot go on.
func TestSubmittedShrinksItsRange(t *testing.T) {
	t.Parallel()
	tooMany := message(3, 35, "Too many rows scanned (over 1000); see 'p4 help maxscanrows'.\n")
	f := newFake(t)
	f.reply("changes -s submitted -m 1", stat("change", "600"))
	key := func(from, to int) string { return fmt.Sprintf("changes -s submitted //depot/...@%d,@%d", from, to) }
	for _, refused := range [][2]int{{11, 600}, {11, 305}, {158, 600}} {
		f.reply(key(refused[0], refused[1]), tooMany)
	}
	f.reply(key(11, 157), stat("change", "20"))
	f.reply(key(158, 378), stat("change", "200"))
	fetcher := f.fetcher()
	for _, step := range []struct{ after, upTo, found review.Changelist }{{10, 157, 20}, {157, 378, 200}} {
		list, upTo, err := fetcher.Submitted(t.Context(), step.after)
		if err != nil || upTo != step.upTo || !slices.Equal(list, []review.Changelist{step.found}) {
			t.Fatalf("after %d: %v up to %d, %v", step.after, list, upTo, err)
		}
	}
	for n := 600; n > 451; n-- {
		f.reply(key(452, n), tooMany)
	}
	list, upTo, err := f.fetcher().Submitted(t.Context(), 451)
	if failure.ClassOf(err) != failure.TooLarge || upTo != 451 || list != nil {
		t.Errorf("one number over the limit: %v up to %d, %v", list, upTo, err)
	}
}
