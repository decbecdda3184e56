package main

import "fmt"

// From severity failed on, the exit status is 1.
const (
	warning = 2
	failed  = 3
)

// Generic codes.
const (
	genericUsage   = 1
	genericUnknown = 2
	genericIllegal = 4
	genericEmpty   = 17
	genericFault   = 33
	genericAdmin   = 35
	genericComm    = 38
)

// A message is what the server or the client reports. Texts, severities and
// generic codes are as in the 2023.2 client. Text is a format.
type message struct {
	severity, generic int
	text              string
}

var (
	badCommand    = message{failed, genericUsage, "Unknown command.  Try 'p4 help' for info."}
	invalidOption = message{failed, genericUsage, "Invalid option: %s."}
	wrongArgCount = message{failed, genericUsage, "Missing/wrong number of arguments."}
	badChange     = message{failed, genericUsage, "Invalid changelist number '%s'."}
	badRevision   = message{failed, genericIllegal, "Invalid changelist/client/label/date '%s'."}
	noSuchChange  = message{failed, genericUnknown, "Change %s unknown."}
	noSuchFiles   = message{warning, genericEmpty, "%s - no such file(s)."}
	accessDenied  = message{warning, genericEmpty, "%s - protected namespace - access denied."}
	unknownField  = message{failed, genericUsage, "Unknown field name '%s'."}
	// checkoutFailed has the lines of three messages: of the connection, the archive and the system.
	checkoutFailed = message{failed, genericFault, "Operation 'user-print' failed.\nLibrarian checkout %[1]s failed.\nopen for read: %[1]s,v: No such file or directory"}
	noSuchUsers    = message{warning, genericEmpty, "%s - no such user(s)."}
	partnerExited  = message{failed, genericComm, "Partner exited unexpectedly."}
	keyNotTrusted  = message{failed, genericComm, "The authenticity of '%s' can't be established,\n" +
		"this may be your first attempt to connect to this P4PORT.\nThe fingerprint for the key sent to your client is\n" +
		"%s\nTo allow connection use the 'p4 trust' command."}
)

// maxScanRows is the message of a request over the limit.
var maxScanRows = message{failed, genericAdmin, "Too many rows scanned (over %d); see 'p4 help maxscanrows'."}

// faultMessages are the messages that a fault may ask for by name.
var faultMessages = map[string]message{
	"MsgServer::LoginExpired":    {failed, genericIllegal, "Your session has expired, please login again."},
	"MsgServer::TooManyCommands": {failed, genericUsage, "Request refused: this server is configured to run a maximum of 100 simultaneous commands. Please try again later when the load is lower."},
	"MsgDb::MaxResults":          {failed, genericAdmin, "Request too large (over 1000); see 'p4 help maxresults'."},
}

// format returns the text with args. The text of a fault is used as it is.
func (m message) format(args ...any) string {
	if len(args) == 0 {
		return m.text
	}
	return fmt.Sprintf(m.text, args...)
}
