package main

// What the commands say. The texts, codes and severities are those of the
// 2023.2 client; they are wire format.
var (
	connectFailed     = define("MsgClient::Connect", 1, failed, evComm, "Connect to server failed; check $P4PORT.")
	tcpConnectFailed  = define("MsgRpc::TcpConnect", 12, failed, evComm, "TCP connect to %host% failed.")
	tcpPortInvalid    = define("MsgRpc::TcpPortInvalid", 22, failed, evComm, "TCP port number %service% is out of range.")
	nameUnresolved    = define("MsgRpc::NameResolve", 37, failed, evComm, "%errortext%")
	netFailed         = define("MsgOs::Net", 3, failed, evComm, "%operation%: %arg%: %errmsg%")
	partnerExited     = define("MsgRpc::Closed", 1, failed, evComm, "Partner exited unexpectedly.")
	hostKeyUnknown    = define("MsgRpc::HostKeyUnknown", 48, failed, evComm, "The authenticity of '%host%' can't be established,\nthis may be your first attempt to connect to this P4PORT.\nThe fingerprint for the key sent to your client is\n%key%[\nTo allow connection use the '%cmd%' command.]")
	invalidOption     = define("MsgSupp::Invalid", 4, failed, evUsage, "Invalid option: -%option%.")
	optionNeedsArg    = define("MsgSupp::NeedsArg", 5, failed, evUsage, "Option: -%option% needs argument.")
	optionNeedsNumber = define("MsgSupp::NeedsNonNegArg", 33, failed, evUsage, "Option: -%option% needs a non-negative integer argument.")
	wrongArgCount     = define("MsgSupp::WrongArg", 7, failed, evUsage, "Missing/wrong number of arguments.")

	// access
	badCommand   = define("MsgServer::BadCommand", 26, failed, evUsage, "Unknown command.  Try '%'p4 help'%' for info.")
	badPassword  = define("MsgServer::BadPassword", 21, failed, evConfig, "Perforce password (%'P4PASSWD'%) invalid or unset.")
	needsUnicode = define("MsgServer::Unicode", 22, failed, evConfig, "Unicode server permits only unicode enabled clients.")
	noUnicode    = define("MsgServer::Unicode2", 23, failed, evConfig, "Unicode clients require a unicode enabled server.")
	noPermission = define("MsgDm::NoPerms", 41, failed, evProtect, "You don't have permission for this operation.")

	// arguments
	badChange         = define("MsgDm::BadChange", 14, failed, evUsage, "Invalid changelist number '%change%'.")
	noSuchChange      = define("MsgDm::NoSuchChange", 26, failed, evUnknown, "%change% unknown.")
	badAtRev          = define("MsgDm::BadAtRev", 101, failed, evIllegal, "Invalid changelist/client/label/date '@%arg%'.")
	badRevSpec        = define("MsgDm::BadRevSpec", 102, failed, evUsage, "Unintelligible revision specification '%arg%'.")
	badRevision       = define("MsgDm::BadRevision", 17, failed, evUsage, "Invalid revision number '%rev%'.")
	noRevRange        = define("MsgDm::NoRevRange", 98, failed, evUsage, "A revision range cannot be used here.")
	nullDir           = define("MsgDm::IdNullDir", 9, failed, evUsage, "Null directory (//) not allowed in '%id%'.")
	relativePath      = define("MsgDm::IdRelPath", 10, failed, evUsage, "Relative paths (., ..) not allowed in '%id%'.")
	needClient        = define("MsgDm::NeedClient", 99, failed, evConfig, "%arg% - must create client '%client%' to access local files.")
	noSuchDomain      = define("MsgDm::NoSuchDomain2", 35, failed, evUnknown, "%type% '%name%' unknown - use '%command%' command to create it.")
	noSuchFiles       = define("MsgDm::ExFILE", 375, warn, evEmpty, "[%argc% - no|No] such file(s).")
	noDifferingFiles  = define("MsgDm::ExDIFF", 373, warn, evEmpty, "[%argc% - no|No] differing files.")
	noSuchUsers       = define("MsgDm::ExUSER", 366, warn, evEmpty, "[%argc% - no|No] such user(s).")
	notOpenedAnywhere = define("MsgDm::ExOPENALL", 380, warn, evEmpty, "[%argc% - file(s)|File(s)] not opened anywhere.")
	protectedName     = define("MsgDm::ExPROTNAME", 370, warn, evEmpty, "[%argc% - protected|Protected] namespace - access denied.")
	notInView         = define("MsgDm::ExVIEW", 367, warn, evEmpty, "[%argc% - file(s)|File(s)] not in client view.")

	// describe and changes
	changesData           = define("MsgDm::ChangesData", 206, info, 0, "%change% on %date% by %user%@%client%%description%")
	changesDataPending    = define("MsgDm::ChangesDataPending", 207, info, 0, "%change% on %date% by %user%@%client% *pending*%description%")
	describeChange        = define("MsgDm::DescribeChange", 215, info, 0, "%change% by %user%@%client% on %date%%description%")
	describeChangePending = define("MsgDm::DescribeChangePending", 216, info, 0, "%change% by %user%@%client% on %date% *pending*%description%")
	describeData          = define("MsgDm::DescribeData", 217, info, 1, "%depotFile%%depotRev% %action%")
	describeMove          = define("MsgDm::DescribeMove", 495, info, 1, "%depotFile%%depotRev% moved from %depotFile2%%depotRev2%")
	describeDiff          = define("MsgDm::DescribeDiff", 218, info, 0, "\n==== %depotFile%%depotRev% (%type%[/%type2%]) ====\n")
	describeFixed         = define("MsgServer::DescribeFixed", 103, info, 0, "Jobs fixed ...\n")
	jobDescription        = define("MsgDm::JobDescription", 269, info, 0, "%job%[ on %date%][ by %user%][ *%status%*][%description%]")
	describeAffected      = define("MsgServer::DescribeAffected", 104, info, 0, "Affected files ...\n")
	describeShelved       = define("MsgServer::DescribeShelved", 409, info, 0, "Shelved files ...\n")
	describeMovedFiles    = define("MsgServer::DescribeMovedFiles", 377, info, 0, "\nMoved files ...\n")
	describeDifferences   = define("MsgServer::DescribeDifferences", 105, info, 0, "\nDifferences ...")
	describeEmpty         = define("MsgServer::DescribeEmpty", 106, info, 0, "")
	filesDiffer           = define("MsgServer::Diff2Differ", 107, info, 0, "(... files differ ...)")

	// files
	filesData          = define("MsgDm::FilesData", 235, info, 0, "%depotFile%%depotRev% - %action% %change% (%type%)")
	filelogData        = define("MsgDm::FilelogData", 231, info, 0, "%depotFile%")
	filelogRev         = define("MsgDm::FilelogRevMessage", 233, info, 1, "%depotRev% %change% %action% on %date% by %user%@%client% (%type%)%description%")
	filelogInteg       = define("MsgDm::FilelogInteg", 234, info, 2, "%how% %fromFile%%fromRev%")
	openedOther        = define("MsgDm::OpenedOther", 303, info, 0, "%depotFile%%workRev% - %action% %change% (%type%) by %user%@%client%")
	whereData          = define("MsgDm::WhereData", 364, info, 0, "%mapFlag%%depotFile% %clientFile% %localPath%")
	diff2Left          = define("MsgDm::Diff2DataLeft", 220, info, 0, "==== %depotFile%%depotRev% - <none> ===")
	diff2Right         = define("MsgDm::Diff2DataRight", 221, info, 0, "==== <none> - %depotFile%%depotRev% ====")
	diff2Content       = define("MsgDm::Diff2DataContent", 222, info, 0, "==== %depotFile%%depotRev% (%type%) - %depotFile2%%depotRev2% (%type2%) ==== content")
	diff2Types         = define("MsgDm::Diff2DataTypes", 223, info, 0, "==== %depotFile%%depotRev% (%type%) - %depotFile2%%depotRev2% (%type2%) ==== types")
	diff2Identical     = define("MsgDm::Diff2DataIdentical", 224, info, 0, "==== %depotFile%%depotRev% (%type%) - %depotFile2%%depotRev2% (%type2%) ==== identical")
	diff2Unified       = define("MsgDm::Diff2DataUnified", 225, info, 0, "--- %depotFile%\t%depotDate%\n+++ %depotFile2%\t%depotDate2%")
	diff2UnifiedDiffer = define("MsgDm::Diff2DataUnifiedDiffer", 471, info, 0, "Binary files %depotFile%%depotRev% and %depotFile2%%depotRev2% differ")

	// users and server
	usersData          = define("MsgDm::UsersData", 361, info, 0, "%user% <%email%> (%fullName%) accessed %accessDate%")
	reviewData         = define("MsgDm::ReviewData", 329, info, 0, "%change% %user% <%email%> (%fullName%)")
	reviewsData        = define("MsgDm::ReviewsData", 330, info, 0, "%user% <%email%> (%fullname%)")
	counterGet         = define("MsgServer::CounterGet", 102, info, 0, "%counterValue%")
	loginGoodTill      = define("MsgServer::LoginGoodTill", 326, info, 0, "User %user% ticket expires in %hours% hours %minutes% minutes.")
	infoUser           = define("MsgServer::InfoUser", 109, info, 0, "User name: %user%")
	infoClient         = define("MsgServer::InfoClient", 111, info, 0, "Client name: %client%")
	infoHost           = define("MsgServer::InfoHost", 113, info, 0, "Client host: %host%")
	infoUnknownClient  = define("MsgServer::InfoUnknownClient", 137, info, 0, "Client unknown.")
	infoDirectory      = define("MsgServer::InfoDirectory", 114, info, 0, "Current directory: %dirName%")
	infoPeerAddress    = define("MsgServer::InfoPeerAddress", 584, info, 0, "Peer address: %peerAddr%")
	infoClientAddress  = define("MsgServer::InfoClientAddress", 115, info, 0, "Client address: %clientAddr%")
	infoServerAddress  = define("MsgServer::InfoServerAddress", 116, info, 0, "Server address: %serverAddr%")
	infoServerRoot     = define("MsgServer::InfoServerRoot", 117, info, 0, "Server root: %serverRoot%")
	infoServerDate     = define("MsgServer::InfoServerDate", 118, info, 0, "Server date: %serverDate% %serverTimeZone%")
	infoServerUptime   = define("MsgServer::InfoServerUptime", 367, info, 0, "Server uptime: %uptime%")
	infoServerVersion  = define("MsgServer::InfoServerVersion", 119, info, 0, "Server version: %id% (%idDate%)")
	infoServerID       = define("MsgServer::InfoServerID", 598, info, 0, "ServerID: %ServerID%")
	infoServerServices = define("MsgServer::InfoServerServices", 823, info, 0, "Server services: %ServerServices%")
	infoServerLicense  = define("MsgServer::InfoServerLicense", 120, info, 0, "Server license: %license%")
	infoCaseHandling   = define("MsgServer::InfoCaseHandling", 426, info, 0, "Case Handling: %caseHandling%")
)

// How the commands are used, said when they are not.
var (
	useDescribe = define("MsgServer::UseDescribe", 225, failed, evUsage, "Usage: %'describe [-d<flags> -a -m max -s -S -f -O -I] changelist# ...'%")
	useChanges  = define("MsgServer::UseChanges", 213, failed, evUsage, "Usage: %'changes [-i -t -l -L -f -r -c client -e changelist# -m count -s status -u user] [files...] [--stream | --nostream]'%")
	useChangeo  = define("MsgServer::UseChangeo", 211, failed, evUsage, "Usage: %'change -o [ -s ] [ -f ] [ [ -O | -I ] changelist# ]'%")
	useFiles    = define("MsgServer::UseFiles", 233, failed, evUsage, "Usage: %'files [ -a -A -e -i -m max ] [ [ -U ] | [ --streamviews ] ] files...'%")
	usePrint    = define("MsgServer::UsePrint", 623, failed, evUsage, "Usage: %'print [-a -A -K -o localFile -q -m max] [-U] files...'%")
	useFilelog  = define("MsgServer::UseFilelog", 232, failed, evUsage, "Usage: %'filelog [ -c changelist# -h -i -l -L -t -m maxRevs -p -s ] files...'%")
	useFstat    = define("MsgServer::UseFstat", 236, failed, evUsage, "Usage: %'fstat [ -F filter -T fields -m max -r ] [ -c | -e changelist# ] [ -Ox -Rx -Sx ] [-A pattern] [ [-U] | [ --streamviews ] file[rev]...'%")
	useDiff2    = define("MsgServer::UseDiff2", 227, failed, evUsage, "Usage: %'diff2 [ -d<flags> -Od -q -t -u ] [ -b branchName ] [ -S stream ] [ -P parent ] file file2'%")
	useUser     = define("MsgServer::UseUser", 281, failed, evUsage, "Usage: %'user [ -f -F -d -i -o ] [ username ]'%")
	useUsers    = define("MsgServer::UseUsers", 285, failed, evUsage, "Usage: %'users [ -l -a -r -c ] [ -m max ] [ user ... ]'%")
	useReview   = define("MsgServer::UseReview", 272, failed, evUsage, "Usage: %'review [ -c start_changelist# ] [ -t counter_name ]'%")
	useReviews  = define("MsgServer::UseReviews", 273, failed, evUsage, "Usage: %'reviews [ -C client ] [ -c changelist# ] [ files... ]'%")
	useInfo     = define("MsgServer::UseInfo", 245, failed, evUsage, "Usage: %'info [-s]'%")
	useLogin    = define("MsgServer::UseLogin", 316, failed, evUsage, "Usage: %'login [ -s | -p ] [ -a | -h host ] [ -r remotespec ] [ username ]'%")
	useCounter  = define("MsgServer::UseCounter", 218, failed, evUsage, "Usage: %'counter [ -f ] [ -d | -i | -m ] [ -v ] [ --from=old --to=new ] counter_name [ value ] [ ... ]'%")
	useWhere    = define("MsgServer::UseWhere", 287, failed, evUsage, "Usage: %'where [files...]'%")
	useOpened   = define("MsgServer::UseOpened", 264, failed, evUsage, "Usage: %'opened [ -a -m max ] [ -c changelist# -C client -u user -s -g | -x ] [ files... ]'%")
)

// Messages that no command says by itself: faults ask for them by name.
var _ = []*message{
	define("MsgServer::TooManyCommands", 637, failed, evUsage, "Request refused: this server is configured to run a maximum of %maxCommands% simultaneous commands. Please try again later when the load is lower."),
	define("MsgDb::MaxResults", 32, failed, evAdmin, "Request too large (over %maxResults%); see 'p4 help maxresults'."),
	define("MsgServer::TriggerOutput", 362, info, 5, "%result%"),
	define("MsgServer::LbrCheckout", 1, failed, evFault, "Librarian checkout %lbrFile% failed."),
	define("MsgDb::NotUnderClient", 40, failed, evContext, "Path '%path%' is not under client '%client%'."),
	define("MsgDm::ExPROTECT", 369, warn, evEmpty, "[%argc% - no|No] permission for operation on file(s)."),
	define("MsgClient::Fatal", 2, fatal, evClient, "Fatal client error; disconnecting!"),
	define("MsgRpc::NotP4", 6, failed, evComm, "RpcTransport: partner is not a Perforce client/server."),
	define("MsgRpc::MaxWait", 39, failed, evComm, "TCP %operation% exceeded maximum configured duration of %seconds% seconds."),
	define("MsgRpc::TcpRecv", 15, failed, evComm, "TCP receive failed."),
	define("MsgRpc::SslCleartext", 33, failed, evComm, "Failed client connect, server using SSL.\nClient must add SSL protocol prefix to P4PORT."),
	define("MsgRpc::SslConnect", 23, failed, evComm, "SSL connect to %host% failed %error%.\n\tRemove SSL protocol prefix from P4PORT or fix the TLS settings."),
	define("MsgRpc::TcpPeerSsl", 31, failed, evComm, "Failed client SSL connection setup, server not using SSL."),
	define("MsgRpc::HostKeyMismatch", 49, failed, evComm, "******* WARNING P4PORT IDENTIFICATION HAS CHANGED! *******\nIt is possible that someone is intercepting your connection\nto the Perforce P4PORT '%host%'\nIf this is not a scheduled key change, then you should contact\nyour Perforce administrator.\nThe fingerprint for the mismatched key sent to your client is\n%key%[\nTo allow connection use the '%cmd%' command.]"),
	define("MsgRpc::ServiceNoTrust", 50, failed, evComm, "%server% cannot forward your request; target failed SSL/trust verification."),
	define("MsgSupp::NoTrans", 14, warn, evIllegal, "Translation of file content failed near line %arg%[ file %name%]"),
	define("MsgSupp::InvalidDate", 2, failed, evUsage, "Invalid date '%date%'."),
	define("MsgLbr::Purged", 2, failed, evEmpty, "Old revision %lbrRev% of tempobj %lbrFile% purged; try using head revision."),
	define("MsgLbr::LbrOpenFail", 131, failed, evFault, "Error opening librarian file %lbrFile% revision %lbrRev%."),
	define("MsgLbr::RcsTooBig", 128, failed, evTooBig, "Result RCS file '%file%' is too big; change type to compressed text."),
	define("MsgDb::MaxMemory", 33, fatal, evTooBig, "Request too large for server memory (try later?)."),
	define("MsgDb::MaxScanRows", 61, failed, evAdmin, "Too many rows scanned (over %maxScanRows%); see 'p4 help maxscanrows'."),
	define("MsgDb::LicenseExp", 52, failed, evAdmin, "License expired."),
	define("MsgDb::NotUnderRoot", 39, failed, evContext, "Path '%path%' is not under client's root '%root%'."),
	define("MsgDm::MaxLockTime", 453, failed, evAdmin, "Operation took too long (over %maxLockTime% seconds); see '%'p4 help maxlocktime'%'."),
	define("MsgDm::TooManyUsers", 43, failed, evAdmin, "Can't create a new user - over license quota."),
	define("MsgDm::NoProtect", 123, failed, evProtect, "Access for user '%user%' has not been enabled by '%'p4 protect'%'."),
	define("MsgDm::UserNotExist", 358, failed, evUnknown, "User %user% doesn't exist."),
	define("MsgDm::BadMaxResult", 15, failed, evUsage, "Invalid maximum value '%value%'."),
	define("MsgDm::BadCaller", 93, failed, evConfig, "Invalid user (P4USER) or client (P4CLIENT) name."),
	define("MsgDm::NotAsService", 571, failed, evConfig, "Command not allowed for a service user."),
	define("MsgDm::NoSuchDomain", 34, failed, evUnknown, "%type% '%name%' doesn't exist."),
	define("MsgDm::ChangeNotShelved", 787, failed, evFault, "%change% is not currently shelved."),
	define("MsgDm::NoRev", 97, failed, evUsage, "A revision specification (# or @) cannot be used here."),
	define("MsgDm::LockedClient", 94, failed, evProtect, "Locked client '%client%' can only be used by owner '%user%'."),
	define("MsgDm::LockedHost", 95, failed, evProtect, "Client '%client%' can only be used from host '%host%'."),
	define("MsgDm::ClientBoundToServer", 672, failed, evProtect, "Client '%client%' is restricted to use on server '%serverID%'."),
	define("MsgDm::IdHasDash", 4, failed, evUsage, "Initial dash character not allowed in '%id%'."),
	define("MsgDm::IdEmpty", 5, failed, evUsage, "Empty identifier not allowed."),
	define("MsgDm::IdNonPrint", 6, failed, evUsage, "Non-printable characters not allowed in '%id%'."),
	define("MsgDm::IdHasRev", 7, failed, evUsage, "Revision chars (@, #) not allowed in '%id%'."),
	define("MsgDm::IdWild", 11, failed, evUsage, "Wildcards (*, %%%%x, ...) not allowed in '%id%'."),
	define("MsgDm::IdNumber", 12, failed, evUsage, "Purely numeric name not allowed - '%id%'."),
	define("MsgDm::ExCHANGE", 365, warn, evEmpty, "[%argc% - no|No] such changelist."),
	define("MsgDm::ExHAVE", 376, warn, evEmpty, "[%argc% - file(s)|File(s)] not on client."),
	define("MsgDm::ExOPENCHANGE", 381, warn, evEmpty, "[%argc% - file(s)|File(s)] not opened in that changelist."),
	define("MsgDm::ExOPENCLIENT", 382, warn, evEmpty, "[%argc% - file(s)|File(s)] not opened on this client."),
	define("MsgDm::ExATCHANGE", 394, warn, evEmpty, "[%argc% - no|No] file(s) at that changelist number."),
	define("MsgDm::ExATDATE", 395, warn, evEmpty, "[%argc% - no|No] file(s) as of that date."),
	define("MsgDm::ExATHAVE", 396, warn, evEmpty, "[%argc% - file(s)|File(s)] not on client."),
	define("MsgDm::ExATLABEL", 397, warn, evEmpty, "[%argc% - file(s)|File(s)] not in label."),
	define("MsgDm::ExATREVISION", 398, warn, evEmpty, "[%argc% - no|No] file(s) at that revision."),
	define("MsgServer::CommandDisabled", 600, failed, evAdmin, "Operation '%commandName%' disabled on this server."),
	define("MsgServer::CommandCancelled", 332, failed, evAdmin, "Command terminated by 'p4 monitor terminate'."),
	define("MsgServer::ClientRejected", 943, failed, evUsage, "Your application '%app%' has been blocked from the server, please contact your administrator."),
	define("MsgServer::ClientTooOld", 428, failed, evUsage, "Client is too old to use this server.  %message%"),
	define("MsgServer::ClientOpFailed", 29, failed, evClient, "Client side operation(s) failed.  Command aborted."),
	define("MsgServer::MaitModeRestricted", 741, failed, evUsage, "Server is in maintenance mode, command '%op%' is not supported in this mode."),
	define("MsgServer::LoginExpired", 312, failed, evIllegal, "Your session has expired, please %'login'% again."),
	define("MsgServer::LoggedOut", 318, failed, evIllegal, "Your session was logged out, please %'login'% again."),
	define("MsgServer::PasswordExpired", 455, failed, evIllegal, "Your password has expired, please change your password."),
	define("MsgServer::TicketOnly", 322, failed, evUsage, "Password not allowed at this server security level, use '%'p4 login'%'."),
	define("MsgServer::MustSetPassword", 307, failed, evUsage, "Password must be set before access can be granted."),
	define("MsgServer::WeakPassword", 321, failed, evUsage, "The security level of this server requires the password to be reset."),
	define("MsgServer::Login2Required", 891, failed, evConfig, "Multi factor authentication required! Run 'p4 login2'."),
	define("MsgServer::Login2Rejected", 911, failed, evUnknown, "Multi factor authentication was rejected."),
	define("MsgServer::SSOfailed", 356, failed, evUnknown, "Single sign-on on client failed: %result%"),
	define("MsgServer::BadPassword0", 38, failed, evIllegal, "Password invalid."),
	define("MsgServer::NoHostlessTickets", 938, failed, evIllegal, "'%'p4 login -a'%' has been disabled on this server."),
	define("MsgServer::NoSuchUser", 37, failed, evUnknown, "User %user% doesn't exist."),
	define("MsgServer::LoginNoTicket", 327, info, 0, "User %user% was authenticated by password not ticket."),
	define("MsgServer::LoginNotRequired", 313, info, 0, "'%'login'%' not necessary, no password set for [user %user%|this user]."),
	define("MsgServer::LbrDiff", 2, failed, evFault, "Librarian diff %lbrFile% failed."),
	define("MsgServer::ReplicaXferFailed", 474, failed, evFault, "Transfer of librarian file '%file%' failed."),
	define("MsgServer::TriggerFailed", 47, failed, evNotYet, "'%trigger%' validation failed: %result%"),
	define("MsgServer::ServiceNotProvided", 572, failed, evUsage, "Server does not provide this service."),
	define("MsgServer::OpNotAllowedOnRole", 812, failed, evUsage, "Cannot perform operation on server.id '%serverId%' with role '%role%'."),
	define("MsgServer::HandshakeFailed", 27, failed, evComm, "Handshake failed."),
}
