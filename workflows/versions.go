package workflows

import "go.temporal.io/sdk/workflow"

// What running workflows do otherwise than those that earlier builds have begun: a
// predicate each, so that their histories replay. The names are wire format.

// waitsForSlots has a review wait, before the model is asked, while too many of the
// same paths are in flight.
func waitsForSlots(ctx workflow.Context) bool { return since(ctx, "wait-for-slots") }

// heedsNewerShelf has a shelf's review end when the changelist is shelved again.
func heedsNewerShelf(ctx workflow.Context) bool { return since(ctx, "heed-newer-shelf") }

// outdatesReviews has a shelf that is settling tell so to the review before.
func outdatesReviews(ctx workflow.Context) bool { return since(ctx, "outdate-reviews") }

// booksAtOnce has a review open and close its job in local activities.
func booksAtOnce(ctx workflow.Context) bool { return since(ctx, "book-at-once") }

// since reports whether the change was known when the workflow first came here.
func since(ctx workflow.Context, change string) bool {
	return workflow.GetVersion(ctx, change, workflow.DefaultVersion, 1) == 1
}
