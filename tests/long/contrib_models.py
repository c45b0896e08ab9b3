def check_models(checks):
    pass
