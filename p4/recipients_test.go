package p4

import (
	"reflect"
	"testing"

	"github.com/criticizer/criticizer/review"
)

func TestRecipients(t *testing.T) {
	t.Parallel()
	author := func(user, address string) review.Recipient {
		return review.Recipient{User: user, Address: address, Role: review.RoleAuthor}
	}
	subscriber := func(user, address string) review.Recipient {
		return review.Recipient{User: user, Address: address, Role: review.RoleSubscriber}
	}
	reviewer := func(user, email string) []byte { return stat("user", user, "email", email, "name", "A Name") }
	cases := map[string]struct {
		author     string
		users      [][]byte
		reviews    [][]byte
		want       []review.Recipient
		unresolved []string
	}{
		"the author comes first": {
			"ann", [][]byte{stat("User", "ann", "Email", "ann@example.com")}, [][]byte{reviewer("bob", "bob@example.com")},
			[]review.Recipient{author("ann", "ann@example.com"), subscriber("bob", "bob@example.com")}, nil,
		},
		"no user and no address twice": {
			"ann", [][]byte{stat("User", "ann", "Email", "Ann@Example.com")},
			[][]byte{reviewer("ann", "ann@example.com"), reviewer("team", "ANN@example.com"), reviewer("bob", "bob@example.com"), reviewer("bob2", "BOB@example.com")},
			[]review.Recipient{author("ann", "Ann@Example.com"), subscriber("bob", "bob@example.com")}, nil,
		},
		"a name around the address is dropped": {
			"ann", [][]byte{stat("User", "ann", "Email", "Ann A. <ann@example.com>")}, nil,
			[]review.Recipient{author("ann", "ann@example.com")}, nil,
		},
		"an author the server does not know": {
			"ann", [][]byte{message(2, 17, "ann - no such user(s).\n")}, [][]byte{reviewer("bob", "bob@example.com")},
			[]review.Recipient{subscriber("bob", "bob@example.com")}, []string{"ann"},
		},
		"addresses that are not valid": {
			"ann", [][]byte{stat("User", "ann", "Email", "")},
			[][]byte{reviewer("bob", "bob"), reviewer("carl", "c@example.com\r\nBcc: x@example.com"), reviewer("dora", "a@example.com, b@example.com")},
			nil, []string{"ann", "bob", "carl", "dora"},
		},
		"another user than the author": {
			"ann", [][]byte{stat("User", "anna", "Email", "anna@example.com"), stat("User", "Ann", "Email", "big@example.com")}, nil, nil, []string{"ann"},
		},
		"a name that would be an option":      {"-a", nil, nil, nil, []string{"-a"}},
		"a name that would list all users":    {"*", nil, nil, nil, []string{"*"}},
		"a changelist without a user":         {"", nil, nil, nil, nil},
		"a name that is not UTF-8 is decoded": {"j\xf6rg", [][]byte{stat("User", "j\xf6rg", "Email", "j@example.com")}, nil, []review.Recipient{author("jörg", "j@example.com")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.describes(12, []string{"user", c.author}, rev{path: "//depot/gone", rev: 2, action: "delete"})
			f.reply("users "+c.author, c.users...)
			f.reply("reviews -c 12", c.reviews...)
			change, err := f.fetch(12)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(change.Recipients, c.want) || !reflect.DeepEqual(change.Unresolved, c.unresolved) {
				t.Errorf("recipients = %+v, unresolved = %q; want %+v, %q", change.Recipients, change.Unresolved, c.want, c.unresolved)
			}
		})
	}
}
