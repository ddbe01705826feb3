# What the rules of the program have in common: they are called as a user's function is (Function),
# one request after another, and read no columns of the row.
class RuleOfTheProgram:
    def wishes(self):
        return {"columns": [], "messages": False, "tokens": False}

    def is_async(self):
        return False

    def finished(self, result):
        return result


