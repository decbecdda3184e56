package main

import "strings"

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
// generic codes are those of the 2023.2 client. Text holds %name% for a variable.
type message struct {
	severity, generic int
	text              string
}

var (
	badCommand    = message{failed, genericUsage, "Unknown command.  Try 'p4 help' for info."}
	invalidOption = message{failed, genericUsage, "Invalid option: %option%."}
	wrongArgCount = message{failed, genericUsage, "Missing/wrong number of arguments."}
	badChange     = message{failed, genericUsage, "Invalid changelist number '%change%'."}
	badRevision   = message{failed, genericIllegal, "Invalid changelist/client/label/date '%arg%'."}
	noSuchChange  = message{failed, genericUnknown, "%change% unknown."}
	noSuchFiles   = message{warning, genericEmpty, "%argc% - no such file(s)."}
	accessDenied  = message{warning, genericEmpty, "%argc% - protected namespace - access denied."}
	unknownField  = message{failed, genericUsage, "Unknown field name '%field%'."}
	// checkoutFailed has the lines of three messages: of the connection, the archive and the system.
	checkoutFailed = message{failed, genericFault, "Operation 'user-print' failed.\nLibrarian checkout %lbrFile% failed.\nopen for read: %lbrFile%,v: No such file or directory"}
	noSuchUsers    = message{warning, genericEmpty, "%argc% - no such user(s)."}
	partnerExited  = message{failed, genericComm, "Partner exited unexpectedly."}
	keyNotTrusted  = message{failed, genericComm, "The authenticity of '%host%' can't be established,\n" +
		"this may be your first attempt to connect to this P4PORT.\nThe fingerprint for the key sent to your client is\n" +
		"%key%\nTo allow connection use the 'p4 trust' command."}
)

// faultMessages are the messages that a fault may ask for by name.
var faultMessages = map[string]message{
	"MsgServer::LoginExpired":    {failed, genericIllegal, "Your session has expired, please login again."},
	"MsgServer::TooManyCommands": {failed, genericUsage, "Request refused: this server is configured to run a maximum of %maxCommands% simultaneous commands. Please try again later when the load is lower."},
	"MsgDm::MaxScanRows":         {failed, genericAdmin, "Too many rows scanned (over %maxScanRows%); see 'p4 help maxscanrows'."},
	"MsgDm2::MaxMem":             {failed, genericAdmin, "Too much memory used (over %maxMem%); see 'p4 help maxmemory'."},
	"MsgDb::MaxResults":          {failed, genericAdmin, "Request too large (over %maxResults%); see 'p4 help maxresults'."},
}

// format puts the values of variables, given as name and value in turn, in the text.
func (m message) format(args ...string) string {
	pairs := make([]string, len(args))
	for i, arg := range args {
		if pairs[i] = arg; i%2 == 0 {
			pairs[i] = "%" + arg + "%"
		}
	}
	return strings.NewReplacer(pairs...).Replace(m.text)
}
